package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/send"
)

// remoteParams are the parameters of the route that are flags of send, beside the format.
var remoteParams = []string{
	"multiline", "ts_field", "ts_format", "require_ts", "delimiter", "tz", "year", "user_field", "user_regex", "extract", "drop_raw",
	"service", "type", "level",
}

// sendTo sends to a gateway over HTTP.
func (a *app) sendTo(ctx context.Context, cmd *cobra.Command, f *reading, topic, to string, s *settings, files []send.Input, total int64, o string) error {
	cfg, err := remoteConfig(cmd, to, topic, f)
	if err != nil {
		return err
	}
	if cfg.Stats, err = send.NewStats("", inWords); err != nil {
		return err
	}
	quiet := f.flag("quiet") == "true"
	cfg.Roots = s.CA
	cfg.Note, cfg.Token, cfg.Progress = a.note, s.Token, a.sendProgress(quiet, topic, total, cfg.Stats)
	err = errors.Join(send.NewRemote(cfg).Run(ctx, files), cfg.Stats.Finish())
	return a.sent(cfg.Stats.Summary(), o, quiet, err)
}

// gatewayURL reads --to.
func gatewayURL(to string) (*url.URL, error) {
	base, err := url.Parse(to)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, usageError{fmt.Errorf("--to: %q is not the URL of a gateway, such as http://127.0.0.1:7070", to)}
	}
	return base, nil
}

// remoteConfig reads --to and the flags that a gateway knows.
func remoteConfig(cmd *cobra.Command, to, topic string, f *reading) (cfg send.RemoteConfig, err error) {
	base, err := gatewayURL(to)
	if err != nil {
		return cfg, err
	}
	for _, name := range []string{"nats", "nats-creds", "clickhouse"} {
		if cmd.Flags().Changed(name) {
			return cfg, usageError{fmt.Errorf("--%s and --to name two places to send to: a gateway has its own servers; leave one of the two out", name)}
		}
	}
	for _, name := range []string{"map", "records", "report", "cut", "split", "full", "spool-dir", "spool-bytes"} {
		if cmd.Flags().Changed(name) {
			return cfg, usageError{fmt.Errorf("--%s cannot be given with --to: a gateway does not know it; send through NATS", name)}
		}
	}
	cfg = send.RemoteConfig{
		URL: base, Topic: topic, Params: url.Values{}, Format: f.flag("format"), Multiline: f.regex("multiline"),
		MaxWait: f.span("timeout"), NeedsTime: f.flag("require-ts") == "true",
	}
	cfg.Params.Set("format", f.flag("format"))
	for _, name := range remoteParams {
		if flag := operations.SendEvents.Param(name).FlagName(); cmd.Flags().Changed(flag) {
			cfg.Params.Set(name, f.flag(flag))
		}
	}
	return cfg, f.err
}
