package retention

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
)

// awaitTime is how long fields may stay because an erasure is under way, before it is reported: one
// waits ten minutes for what was accepted, unless it was told otherwise.
const awaitTime = 15 * time.Minute

// awaited reports whether fields of a shard stay until an erasure has ended: one that may mean events of
// the shard and has not taken them yet. It might know them by these fields alone. The error says which
// one was left alone for too long.
func awaited(all ledger.Erasures, e *registry.Shard, now time.Time) (waits bool, err error) {
	for _, x := range all.Only(ledger.Waiting, ledger.Erasing) {
		if !e.Overlaps(x.From, x.To) {
			continue
		}
		waits = true
		if since := now.Sub(x.CreatedAt); since >= awaitTime {
			return true, fmt.Errorf("its fields are not cleared while erasure %s is under way, which may know its events by them: it was entered %s and has not ended; run `almanac erase resume %s`",
				x.ID, x.CreatedAt.UTC().Format(time.RFC3339), x.ID)
		}
	}
	return waits, nil
}
