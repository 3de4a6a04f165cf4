package documents

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// roomSeen is how full DOCS was when it was last looked at.
type roomSeen struct {
	at          time.Time
	keys, bytes uint64
	limit       int64
}

const (
	// roomAge is how long admit goes by what it saw.
	roomAge = time.Second
	// createsUpTo is the share of DOCS, in hundredths, above which creates are refused,
	// so that updates, removals and stubs still fit.
	createsUpTo = 90
)

// admit refuses creates where DOCS has no room for their ids. Its count is of all
// topics together: each id is memory of the one NATS. It returns when the count began that
// has them now.
func (c *Collection) admit(ctx context.Context, creates int) (in time.Time, err error) {
	if creates == 0 {
		return in, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.room.at) > roomAge {
		info, err := streams.Info(ctx, c.reg.JetStream(), schemas.StreamDocs)
		if err != nil {
			return in, err
		}
		c.w.Had(info.State.LastSeq)
		c.room = roomSeen{time.Now(), info.State.NumSubjects, info.State.Bytes, info.Config.MaxBytes}
	}
	switch r := &c.room; {
	case r.keys+uint64(creates) > uint64(c.topic.Documents.MaxDocuments):
		return in, fmt.Errorf("%w: %s holds %d ids, and topic %q allows %d (max_documents); asked for %d more", ErrFull, schemas.StreamDocs, r.keys, c.topic.Name, c.topic.Documents.MaxDocuments, creates)
	case r.limit > 0 && r.bytes > uint64(r.limit)/100*createsUpTo:
		return in, fmt.Errorf("%w: %s holds %d bytes of %d, and takes no new documents above %d %%; see that ClickHouse and the sinks keep up", ErrFull, schemas.StreamDocs, r.bytes, r.limit, createsUpTo)
	}
	c.room.keys += uint64(creates)
	return c.room.at, nil
}

// giveBack takes creates that were not stored out of the count that admit let them into. A later
// count never had them.
func (c *Collection) giveBack(creates int, in time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.room.at.Equal(in) {
		return
	}
	c.room.keys -= min(c.room.keys, uint64(creates))
}
