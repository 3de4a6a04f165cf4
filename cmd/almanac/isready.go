package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/ops"
)

func (a *app) readyCommand() *cobra.Command {
	words := ""
	for _, w := range ops.Words {
		words += fmt.Sprintf("\n  %-15s %s", w.Word, w.Means)
	}
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Ask a process whether it is ready, for probes that run a command",
		Long: `Ask a process of Almanac on this machine whether it is ready, as GET /readyz does,
for probes that run a command. It asks the setting http, else the up on the data
directory, else 127.0.0.1:7070. A process that is not ready says why:
` + words,
		Example: `  almanac ready
  almanac ready --http 127.0.0.1:7071 -o json`,
		Annotations: exits{exitOK: "ready", exitFailed: "not ready, with the reasons, or it does not answer"}.declared(),
		Args:        arguments(0, 0),
		RunE:        a.does(a.isReady),
	}
	keyFlags(cmd.Flags(), "http")
	outputFlag(cmd, asTable, asJSON)
	return cmd
}

func (a *app) isReady(ctx context.Context, cmd *cobra.Command, _ []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	base, err := s.ownHTTP()
	if err != nil {
		return err
	}
	now, err := ops.Ask(ctx, base)
	if err != nil {
		return fmt.Errorf("no process of Almanac answers at %s: start it, or name its address by --http: %w", base, err)
	}
	if printed, err := printRecord(a, format(cmd, asTable), now); err != nil {
		return err
	} else if !printed {
		text := ""
		if now.Ready {
			text = "ready\n"
		}
		for _, r := range slices.Concat(now.Reasons, now.Impaired) {
			text += printableLines(r.String()) + "\n"
		}
		if _, err := fmt.Fprint(a.stdout, text); err != nil {
			return err
		}
	}
	if !now.Ready {
		return errSaid
	}
	return nil
}

// ownHTTP is where a process of these settings serves how it is. One on all addresses is asked on loopback.
func (s *settings) ownHTTP() (string, error) {
	host, port, err := listenAddress(s.HTTP, defaultHTTPPort)
	if s.HTTP == settingOff {
		host, port, err = listenAddress("", defaultHTTPPort)
	}
	if err != nil {
		return "", configError{fmt.Errorf("http: %w", err)}
	}
	if up, err := embedded.ReadAddresses(s.Data); err == nil && up.HTTP != "" && (s.HTTP == "" || s.HTTP == settingOff || port == 0) {
		return up.HTTP, nil
	}
	if port == 0 {
		return "", fmt.Errorf("http: %q is any free port, and no almanac up on %s says which: name the address by --http", s.HTTP, s.Data)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = map[bool]string{true: "127.0.0.1", false: "::1"}[ip.To4() != nil]
	}
	scheme := "http://"
	if cmp.Or(s.TLSCert, s.TLSKey) != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, strconv.Itoa(port)), nil
}
