package billing

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// verb is that of jobs in the registry.
const verb = "usage-close"

// state is the round under way, as the registry has it.
type state struct {
	Into    string        `json:"into"`
	GroupBy usage.GroupBy `json:"group_by"`
	Measure usage.Measure `json:"measure"`
	Round   int           `json:"round"`
	Buckets int           `json:"buckets"`
}

// item is an event to publish for a key.
type item struct {
	key   Key
	id    schemas.ID
	event schemas.Event
}

// Bounds of a bucket's frame, below those of any frame, so that a later attempt may have more
// in it.
const (
	bucketRows  = schemas.FrameRows / 2
	bucketBytes = schemas.MaxFrameBytes / 2
	maxBuckets  = 1 << 20
)

// bucketsFor is the least power of two of buckets none of which has too much in it.
func bucketsFor(t *schemas.Topic, items []item) int {
	for n := 1; ; n *= 2 {
		rows, bytes := make([]int, n), make([]int, n)
		fits := true
		for i := range items {
			b := items[i].key.bucket(n)
			rows[b]++
			bytes[b] += frame.MaxRowBytes(t, items[i].event.Bytes(), len(items[i].event.Attrs))
			fits = fits && rows[b] < bucketRows && (bytes[b] <= bucketBytes || rows[b] == 1)
		}
		if fits || n == maxBuckets {
			return n
		}
	}
}

// begin enters a round in the registry, or finds it there, and returns its number of buckets.
func (d *Closer) begin(ctx context.Context, r *Request, l *ledger, number int, into *schemas.Topic, items []item) (int, error) {
	if found := l.rounds[number]; found != nil {
		return found.buckets, nil
	}
	for {
		j, err := d.cfg.Registry.Job(ctx, verb, r.job())
		was := state{Round: -1}
		switch {
		case errors.Is(err, registry.ErrNotFound):
			j = registry.Job{ID: r.job(), Verb: verb}
			j.For(r.from, into)
		case err != nil:
			return 0, err
		default:
			if err := json.Unmarshal(j.State, &was); err != nil {
				return 0, fmt.Errorf("billing: the registry's job %s: %w", j.ID, err)
			}
			if err := was.fits(r); err != nil {
				return 0, err
			}
		}
		if was.Round == number {
			return was.Buckets, nil
		}
		if was.Round > number {
			return 0, fmt.Errorf("%w: round %d of month %s of topic %q was published into %q and is not there", ErrLost, was.Round, r.Month, r.Topic, r.Into)
		}
		now := state{r.Into, r.GroupBy, r.Measure, number, bucketsFor(into, items)}
		if j.State, err = json.Marshal(now); err != nil {
			return 0, err
		}
		j.UpdatedAt, j.Done = d.cfg.Now().UTC(), false
		if err := d.cfg.Registry.SaveJob(ctx, &j); err == nil {
			return now.Buckets, nil
		} else if !errors.Is(err, registry.ErrConflict) || ctx.Err() != nil {
			return 0, err
		}
	}
}

// job is the month's job.
func (r *Request) job() string { return r.Topic + "-" + r.Month.String() }

// fits refuses a request that is not the one which closed the month.
func (s *state) fits(r *Request) error {
	if s.Into == r.Into && s.GroupBy == r.GroupBy && s.Measure == r.Measure {
		return nil
	}
	return fmt.Errorf("%w: %w: month %s of topic %q is closed into %q by %s (%s)", schemas.ErrRequest, ErrElsewhere, r.Month, r.Topic, s.Into, s.GroupBy, s.Measure)
}

// closed reports what the registry knows of a month whose bills are not found.
func (d *Closer) closed(ctx context.Context, r *Request) error {
	j, err := d.cfg.Registry.Job(ctx, verb, r.job())
	if errors.Is(err, registry.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var s state
	if err := json.Unmarshal(j.State, &s); err != nil {
		return fmt.Errorf("billing: the registry's job %s: %w", j.ID, err)
	}
	if !j.Done && s.Round == 0 {
		return nil
	}
	if err := s.fits(r); err != nil {
		return err
	}
	return fmt.Errorf("%w: month %s of topic %q was closed at %s, and the bills are not all in %q any more. Was something erased or dropped there? Nothing is published again", ErrLost, r.Month, r.Topic, j.UpdatedAt.Format("2006-01-02 15:04"), r.Into)
}

// finish says in the registry that the round is complete.
func (d *Closer) finish(ctx context.Context, r *Request, into *schemas.Topic) error {
	if err := d.cfg.Registry.IfRemoved(ctx, nil, r.from, into); err != nil {
		return err // the job of that name may be of the topics that have the names by now
	}
	j, err := d.cfg.Registry.Job(ctx, verb, r.job())
	if errors.Is(err, registry.ErrNotFound) || err == nil && j.Done {
		return nil
	}
	if err != nil {
		return err
	}
	j.Done, j.UpdatedAt = true, d.cfg.Now().UTC()
	if err := d.cfg.Registry.SaveJob(ctx, &j); err != nil && !errors.Is(err, registry.ErrConflict) {
		return err
	}
	return nil
}

// publish publishes a round's buckets that are not there, and returns how many of the items
// were published by it.
func (d *Closer) publish(ctx context.Context, r *Request, l *ledger, number, buckets int, into *schemas.Topic, at usage.Positions, items []item) (int, error) {
	now := max(d.cfg.Now().UnixNano(), r.Month.End())
	out, err := streams.NewPublisher(d.cfg.NATS)
	if err != nil {
		return 0, err
	}
	b := frame.NewBuilder(into)
	published := 0
	send := func(producer string, seq uint64, rows int) error {
		f, payload := b.Encode()
		f.Producer, f.Seq = producer, seq
		msg := schemas.EventsFrame(into.Name, schemas.MonthOf(now), 0, f, append([]byte(nil), payload...))
		b.Reset()
		return out.Publish(ctx, msg, func(duplicate bool) {
			if !duplicate {
				published += rows
			}
		})
	}
	run := r.run(at)
	if l.positions(run) == nil {
		for i, e := range r.positionsEvents(run, at) {
			sum := digest("stands on", r.Topic, r.Month.String(), r.Into, run, i)
			b.Append(&e, now, schemas.DerivedID(r.Month.End(), hash(sum[:]), hash(sum[8:])))
			if err := send(hex.EncodeToString(sum[:8]), 1, 0); err != nil {
				return 0, err
			}
		}
		if err := out.Flush(ctx); err != nil {
			return 0, err
		}
	}
	d.cfg.Crash("billing.positions")
	byBucket := map[int][]*item{}
	for i := range items {
		n := items[i].key.bucket(buckets)
		byBucket[n] = append(byBucket[n], &items[i])
	}
	for n := range buckets {
		if found := l.rounds[number]; found != nil && found.found[n] {
			continue
		}
		marker := r.bucketEvent(number, n, buckets)
		sum := digest("bucket of", r.Topic, r.Month.String(), r.Into, number, n)
		b.Append(&marker, now, schemas.DerivedID(r.Month.End(), hash(sum[:]), hash(sum[8:])))
		rows := 0
		for _, it := range byBucket[n] {
			if b.Rows() < schemas.FrameRows && b.Fits(&it.event) {
				b.Append(&it.event, now, it.id)
				rows++
			}
		}
		name, seq := r.producer(number, n)
		if err := send(name, seq, rows); err != nil {
			return 0, err
		}
		if n%schemas.MaxInFlight == 0 { // tests: some of the frames are there
			if err := out.Flush(ctx); err != nil {
				return 0, err
			}
			d.cfg.Crash("billing.some")
		}
	}
	if err := out.Flush(ctx); err != nil {
		return 0, err
	}
	d.cfg.Crash("billing.all")
	return published, nil
}
