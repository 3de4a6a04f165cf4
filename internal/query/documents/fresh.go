package documents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// lanesAtOnce is how many lanes of DOCS are read side by side, as many as a topic has unless it
// says otherwise: each waits for two answers, and may hold 8 MiB that are read ahead.
const lanesAtOnce = 4

// emptyUpTo says that a lane of DOCS has no record above stored, up to end, and no stub of one:
// what came up to there was of other lanes, or was stored by then. A server looks for a lane's
// next message through all that came after, so a reader remembers where it has looked.
type emptyUpTo struct{ stored, end uint64 }

// from is the sequence above which a lane is to be read, given up to which it is stored.
func (p emptyUpTo) from(stored uint64) uint64 {
	if p.stored <= stored {
		return max(stored, p.end)
	}
	return stored
}

// unarchived is what DOCS has above what is archived.
type unarchived struct {
	// left: a record above what is archived has left DOCS. A read of ClickHouse that began
	// before may not have it.
	left  bool
	empty seenEmpty
	end   uint64 // of DOCS, before it was read
}

// seenEmpty is what a reader remembers of the stream DOCS that was created at a time, by lane,
// over one connection.
type seenEmpty struct {
	created    time.Time
	reconnects uint64
	lanes      map[int]emptyUpTo
}

// stillHolds is what still holds of a stream with this end. A DOCS that ends below what was passed lost
// its end, and gives those sequences again, to other records.
func (g seenEmpty) stillHolds(created time.Time, reconnects, last uint64) seenEmpty {
	out := seenEmpty{created, reconnects, map[int]emptyUpTo{}}
	// A server that lost the end of a stream was started again.
	if !g.created.Equal(created) || g.reconnects != reconnects {
		return out
	}
	for lane, p := range g.lanes {
		if p.end <= last {
			out.lanes[lane] = p
		}
	}
	return out
}

// fresh calls f with each record that DOCS has above what is archived, by one lane's at a time
// and in no order of lanes, and with whether an erasure under way means it. What is damaged
// there, or is not a record, is passed over.
func (r *Reader) fresh(ctx context.Context, t *schemas.Topic, upTo map[int]uint64, was seenEmpty, f func(rec *document.Record, erased bool)) (unarchived, error) {
	// Counted before DOCS is read: what is read over a later connection is not remembered for it.
	reconnects := r.js.Conn().Stats().Reconnects
	info, err := streams.Info(ctx, r.js, schemas.StreamDocs)
	if err != nil {
		return unarchived{}, err
	}
	last := info.State.LastSeq
	was = was.stillHolds(info.Created, reconnects, last)
	out := unarchived{empty: was, end: last}
	out.empty.lanes = maps.Clone(was.lanes)
	var mu sync.Mutex
	g, gctx := fanout.WithContext(ctx)
	g.SetLimit(lanesAtOnce)
	for lane := range t.Lanes {
		from := was.lanes[lane].from(upTo[lane])
		if from >= last {
			continue
		}
		g.Go(func() error {
			records, left := false, false
			err := r.lane(gctx, t, lane, from+1, func(rec *document.Record) error {
				if rec.Stub != nil {
					left = left || rec.RowSeq() > upTo[lane]
					return nil
				}
				records = true
				erased, err := r.Erased(gctx, t, rec)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					f(rec, erased)
				}
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			switch out.left = out.left || left; {
			case err == nil && !records && !left:
				out.empty.lanes[lane] = emptyUpTo{upTo[lane], last}
			case from < was.lanes[lane].end:
				delete(out.empty.lanes, lane) // it has records where none were
			}
			return err
		})
	}
	return out, g.Wait()
}

// lane calls f with the records and stubs of a lane from a sequence on. It asks for a single message
// first, which is cheap where there is none: for a batch the server counts what is to come.
func (r *Reader) lane(ctx context.Context, t *schemas.Topic, lane int, from uint64, f func(*document.Record) error) error {
	filter := t.SourceFilter(schemas.StreamDocs, fmt.Sprint(lane))
	first, err := streams.DecideNext(ctx, r.js, schemas.StreamDocs, filter, from)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return streams.Gather(ctx, r.js, schemas.StreamDocs, filter, first.Sequence, nil, func(msg *streams.Message) (bool, error) {
		if rec := parse(msg); rec != nil {
			return true, f(rec)
		}
		return true, nil
	})
}
