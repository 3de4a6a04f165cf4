package bench

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
)

// ProduceCommand is the hidden subcommand that Suite.Producer must pass on to ProduceMain
// before it does anything else.
const ProduceCommand = "__produce"

// ProduceMain is the producer process of the figures of memory and inputs.
func ProduceMain(ctx context.Context, args []string, stdout io.Writer) error {
	f := flag.NewFlagSet(ProduceCommand+" TOPIC", flag.ContinueOnError)
	events := f.Int("events", 1_000_000, "how many events")
	size := f.Int("event-bytes", 200, "about the size of an event")
	seed := f.Uint64("seed", 1, "which events")
	timed := f.Bool("timed", false, "print what it took, as JSON")
	if len(args) == 0 {
		return errors.New(ProduceCommand + " is started by the bench itself, not by hand: no topic is named")
	}
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if !*timed {
		return Produce(ctx, os.Getenv("ALMANAC_NATS"), args[0], *events, *size, *seed)
	}
	took, err := ProduceTimed(ctx, os.Getenv("ALMANAC_NATS"), args[0], *events, *size, *seed)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(took)
}
