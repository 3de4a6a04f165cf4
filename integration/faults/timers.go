package faults

import (
	"context"
	"net/netip"

	"github.com/almanac-events/almanac/timers/callback"
	"github.com/almanac-events/almanac/timers/dispatch"
)

func playTimers(ctx context.Context, spec Spec) error {
	nc, reg, err := join(ctx, spec)
	if err != nil {
		return err
	}
	caller := callback.New(callback.Config{AllowCIDRs: []callback.Range{{Addresses: netip.MustParsePrefix("127.0.0.0/8"), Low: 1, High: 65535}}})
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
