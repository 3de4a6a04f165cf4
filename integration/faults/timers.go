package faults

import (
	"context"
	"net/netip"
	"os"

	"github.com/almanac-events/almanac/internal/timers/callback"
	"github.com/almanac-events/almanac/internal/timers/dispatch"
)

// secretsEnv has what timers_secrets says, of a dispatcher's process.
const secretsEnv = "ALMANAC_FAULTS_TIMERS_SECRETS"

func playTimers(ctx context.Context, spec Spec) error {
	nc, reg, err := join(ctx, spec)
	if err != nil {
		return err
	}
	secrets, err := callback.ParseSecrets(os.Getenv(secretsEnv))
	if err != nil {
		return err
	}
	caller := callback.New(callback.Config{Secrets: secrets, AllowCIDRs: []callback.Range{{Addresses: netip.MustParsePrefix("127.0.0.0/8"), Low: 1, High: 65535}}})
	var d *dispatch.Dispatcher
	err = patiently(ctx, func(ctx context.Context) (err error) {
		d, err = dispatch.New(ctx, nc, dispatch.Config{Registry: reg, Caller: caller, Hooks: dispatch.Hooks{
			Fault: func(topic string, lane int, err error) { note("%s/%d: %v", topic, lane, err) },
		}})
		return err
	})
	if err != nil {
		return err
	}
	say("ready")
	return d.Run(ctx)
}
