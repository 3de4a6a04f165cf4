package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/gateway/mcp"
)

// mcpWait bounds a request of a tool: reads over HTTP end after a minute by themselves.
const mcpWait = 90 * time.Second

func (a *app) mcpCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer the reads to an assistant, by the Model Context Protocol on stdin and stdout",
		Long: `Offer the reads to an assistant, by the Model Context Protocol on stdin and stdout:
for programs that start their tools themselves. Each tool asks the up on the data
directory, or the gateway that --to names, with the rights of --token. A gateway
serves the same tools at POST /mcp.

Nothing that changes what is stored is a tool.`,
		Example: `  almanac mcp
  ALMANAC_TOKEN=alm_… almanac mcp --to https://logs.example.org
  claude mcp add events -- almanac mcp`,
		Args: arguments(0, 0),
		RunE: a.does(a.mcp),
	}
	keyFlags(cmd.Flags(), "http", "token", "ca_file")
	addFlags(cmd, textFlag("to", "`URL` of a gateway, in place of the up on the data directory"))
	return cmd
}

func (a *app) mcp(ctx context.Context, cmd *cobra.Command, _ []string) error {
	s, err := load(cmd)
	if err != nil {
		return err
	}
	base, err := s.mcpBase(cmd)
	if err != nil {
		return err
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.CA, MinVersion: tls.VersionTLS12}, MaxIdleConnsPerHost: mcp.MaxCalls},
		Timeout:       mcpWait,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	endpoint := mcp.New(mcp.Config{Base: base, Version: thisVersion().Version, Ask: func(r *http.Request) (*mcp.Answer, error) {
		if s.Token != "" {
			r.Header.Set("Authorization", "Bearer "+s.Token)
		}
		res, err := client.Do(r) //nolint:gosec,bodyclose // G704: it asks whom the settings name; who reads the answer closes it
		if err != nil {
			return nil, err
		}
		return &mcp.Answer{Code: res.StatusCode, Media: res.Header.Get("Content-Type"), Body: res.Body}, nil
	}})
	err = endpoint.Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(a.input(ctx)), Writer: noClose{a.stdout}})
	if errors.Is(err, io.EOF) || ctx.Err() != nil {
		return nil // the client is gone, or a signal ends it
	}
	return err
}

// noClose is a writer that others close.
type noClose struct{ io.Writer }

// Close implements io.Closer.
func (noClose) Close() error { return nil }

// mcpBase is where the tools ask.
func (s *settings) mcpBase(cmd *cobra.Command) (string, error) {
	to, _ := cmd.Flags().GetString("to")
	if to == "" {
		return s.ownHTTP()
	}
	base, err := gatewayURL(to)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(base.String(), "/"), nil
}
