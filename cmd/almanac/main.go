// Command almanac is an event log you can query: one binary that runs all of it
// on a laptop, or one part of it in production.
//
//	almanac up                    everything in one process tree, until Ctrl-C
//	almanac send app < lines      events in
//	almanac query | tail | sql    events out
//	almanac verify | doctor       proof that nothing is lost, and what is wrong
//	almanac router | sink         one part each
//
// A file here is one verb. It reads what the user asked for, wires the packages
// that do it, and prints; it decides nothing that belongs to them. settings*.go and errorwords.go
// serve all verbs.
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
