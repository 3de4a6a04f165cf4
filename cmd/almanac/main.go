package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/almanac-events/almanac/internal/bench"
	"github.com/almanac-events/almanac/internal/embedded"
)

func main() {
	// The engine, and the producer of a bench, are children of this very binary and must
	// become it before anything else runs.
	if len(os.Args) > 1 && os.Args[1] == embedded.EngineCommand {
		os.Exit(embedded.EngineMain(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == bench.ProduceCommand {
		if err := bench.ProduceMain(context.Background(), os.Args[2:], os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(exitFailed)
		}
		return
	}
	if version == "dev" {
		version = builtVersion(debug.ReadBuildInfo())
	}
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
