package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/internal/embedded"
)

// version is set by the build: -ldflags "-X main.version=v1.2.3". Without it, main asks for builtVersion.
var version = "dev"

// builtVersion is the version that Go's own tools wrote into the binary, as `go install …@v1.2.3` does; "dev" when they
// know none.
func builtVersion(info *debug.BuildInfo, ok bool) string {
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return info.Main.Version
}

// versions are what this binary is made of.
type versions struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Date    string `json:"date,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	// NATSServer and NATSClient are linked in.
	NATSServer string `json:"nats_server"`
	NATSClient string `json:"nats_client"`
	// Engine is the ClickHouse that `up` would start here; empty when there is none.
	Engine        string `json:"engine,omitempty"`
	EngineVersion string `json:"engine_version,omitempty"`
	DataFormat    int    `json:"data_format"`
}

func (a *app) versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of Almanac and of what is inside",
		Args:  arguments(0, 0),
		RunE: a.does(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			v := thisVersion()
			v.findEngine(ctx)
			if printed, err := printRecord(a, format(cmd, asTable), v); printed || err != nil {
				return err
			}
			engine := "none found"
			if v.Engine != "" {
				engine = v.EngineVersion + " (" + v.Engine + ")"
			}
			name := strings.TrimSpace(v.Version + " " + v.Commit + " " + v.Date)
			_, err := fmt.Fprintf(a.stdout, "almanac %s\n  go          %s %s\n  nats-server %s, client %s\n  engine      %s\n",
				name, v.Go, v.OS, v.NATSServer, v.NATSClient, engine)
			return err
		}),
	}
	outputFlag(cmd, asTable, asJSON, asNDJSON)
	return cmd
}

func thisVersion() versions {
	v := versions{
		Version: version, Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		NATSServer: server.VERSION, NATSClient: nats.Version, DataFormat: embedded.FormatVersion,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value[:min(12, len(s.Value))]
		case "vcs.time":
			v.Date = s.Value
		}
	}
	return v
}

// findEngine looks for the engine without starting it. A library does not say
// its version before that, but the package it came in does.
func (v *versions) findEngine(ctx context.Context) {
	e, err := embedded.Find(ctx, "", nil)
	if err != nil {
		return
	}
	v.Engine, v.EngineVersion = e.String(), "unknown version"
	text, err := os.ReadFile(filepath.Join(filepath.Dir(e.Path), "package.json"))
	if err != nil {
		return
	}
	var pkg struct {
		Version string `json:"version"`
	}
	if json.Unmarshal(text, &pkg) == nil && pkg.Version != "" {
		v.EngineVersion = pkg.Version
	}
}
