package tables

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// How far a statement is, is told while it runs, rises, and ends with it, which it does once its client is gone. Of an id that is not there nothing is told.
func TestRunning(t *testing.T) {
	t.Parallel()
	db, _, _ := openWith(t, schemas.NewTopic("app"))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		body, err := db.Select(ctx, &Select{SQL: "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 1", Own: true, ID: "long"})
		if err == nil {
			_ = body.Close()
		}
		ended <- err
	}()
	var last uint64
	for range 2 {
		embeddedtest.Eventually(t, time.Minute, func() error {
			r, err := db.Running(t.Context(), "long")
			if err != nil || r == nil || r.Rows <= last || r.Bytes == 0 || r.Total < r.Rows {
				return fmt.Errorf("%+v, %d rows before: %w", r, last, err)
			}
			last = r.Rows
			return nil
		})
	}
	if r, err := db.Running(t.Context(), "lon"); r != nil || err != nil {
		t.Errorf("of another id it says %+v, %v", r, err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the statement ended with %v", err)
	}
	embeddedtest.Eventually(t, time.Minute, func() error {
		if r, err := db.Running(t.Context(), "long"); r != nil || err != nil {
			return fmt.Errorf("%+v, %w", r, err)
		}
		return nil
	})
}
