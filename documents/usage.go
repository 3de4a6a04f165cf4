package documents

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// usageSeen is how full DOCS was when it was last looked at.
type usageSeen struct {
	at   time.Time
	keys uint64
}

// usageAge is how long admit goes by what it saw.
const usageAge = time.Second

// admit refuses creates where DOCS has as many ids as the topic allows. Its count is of all
// topics together: each id is memory of the one NATS. It returns when the count began that
// has them now. Whether their bytes fit is for fronts.Writer to say.
func (c *Collection) admit(ctx context.Context, creates int) (in time.Time, err error) {
	if creates == 0 {
		return in, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.usage.at) > usageAge {
		info, err := streams.Info(ctx, c.reg.JetStream(), schemas.StreamDocs)
		if err != nil {
			return in, err
		}
		c.w.Had(info.State.LastSeq)
		c.usage = usageSeen{time.Now(), info.State.NumSubjects}
	}
	if r := &c.usage; r.keys+uint64(creates) > uint64(c.topic.Documents.MaxDocuments) {
		return in, fmt.Errorf("%w: %s holds %d ids, and topic %q allows %d (max_documents); asked for %d more", ErrFull, schemas.StreamDocs, r.keys, c.topic.Name, c.topic.Documents.MaxDocuments, creates)
	}
	c.usage.keys += uint64(creates)
	return c.usage.at, nil
}

// giveBack takes creates that were not stored out of the count that admit let them into. A later
// count never had them.
func (c *Collection) giveBack(creates int, in time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.usage.at.Equal(in) {
		return
	}
	c.usage.keys -= min(c.usage.keys, uint64(creates))
}
