package faults

import (
	"context"
	"fmt"
	"time"
)

// until asks until the answer is nil or the time is up.
func until(ctx context.Context, within, every time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last error
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil { // the last answer, not that there was no time for another
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still wrong after %s: %w", within, last)
		case <-tick.C:
		}
	}
}
