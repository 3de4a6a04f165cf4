package recent

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// fits is what a reader knows of the topics whose checkpoints it compared with EVENTS.
type fits struct {
	mu     sync.Mutex
	topics map[string]fit
}

// fit is one comparison. A stream loses its end only when its server starts again, which
// ends the connection, or in a cluster perhaps another's: so one holds for an epoch and
// for a snapshotAge.
type fit struct {
	epoch uint64
	at    time.Time
	// resumed says where the lanes go on that EVENTS does not fit, as long as their
	// routers have not come to it.
	resumed map[string]resumed
}

// resumed is where a lane goes on after a cut, by the checkpoint it was found with.
type resumed struct {
	source, after uint64
	era           uint32
}

// fit moves the checkpoints that EVENTS does not fit to where their lanes go on, as their
// routers will: see streams.Resume. Where the routers wait for a repair, what may have
// been routed before is read too, and met twice: an event is shown once, by its id.
func (x *Index) fit(ctx context.Context, topic string, epoch uint64, lanes map[string]checkpoint.Checkpoint) error {
	if len(lanes) == 0 {
		return nil // never routed, or not a topic
	}
	known := x.cache.fits.of(topic)
	if known.epoch != epoch {
		known = fit{epoch: epoch}
	}
	if time.Since(known.at) > snapshotAge {
		resumed, err := x.compare(ctx, topic, lanes, known.resumed)
		if err != nil {
			return err
		}
		known.resumed, known.at = resumed, time.Now()
		x.cache.fits.keep(topic, known)
	}
	for lane, to := range known.resumed {
		if cp := lanes[lane]; cp.Source == to.source && cp.Era == to.era {
			cp.Source = to.after
			lanes[lane] = cp
		}
	}
	return nil
}

// compare looks at EVENTS where each checkpoint stands. What was found before is found
// again without reading the streams: it takes a second for a full SHARDS.
func (x *Index) compare(ctx context.Context, topic string, lanes map[string]checkpoint.Checkpoint, before map[string]resumed) (map[string]resumed, error) {
	var mu sync.Mutex
	out := map[string]resumed{}
	g, gctx := fanout.WithContext(ctx)
	g.SetLimit(maxReads)
	for lane, cp := range lanes {
		g.Go(func() error {
			filter := schemas.LaneFilter(topic, lane)
			why, err := streams.Misfit(gctx, x.js, filter, &cp)
			if err != nil || why == "" {
				return err
			}
			to, ok := before[lane]
			if !ok || to.source != cp.Source || to.era != cp.Era {
				found, err := streams.Resume(gctx, x.js, filter, &cp, x.reg.Taken)
				if err != nil {
					return err
				}
				to = resumed{cp.Source, found.After, cp.Era}
			}
			mu.Lock()
			defer mu.Unlock()
			out[lane] = to
			return nil
		})
	}
	return out, g.Wait()
}

func (f *fits) of(topic string) fit {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.topics[topic]
}

func (f *fits) keep(topic string, found fit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.topics == nil {
		f.topics = map[string]fit{}
	}
	f.topics[topic] = found
}

func (f *fits) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.topics = nil
}
