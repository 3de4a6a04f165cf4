package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/streams"
)

// walk is one read over a range of time: first what is in EVENTS, then shard by
// shard in the direction of the page, months as they come.
//
// Whatever is read in EVENTS must be read before the registry's shards, and each
// shard's frames before its rows: so says the way of an event. The checkpoints
// come before all, for what was routed before them is in a shard the registry
// knows, whose range covers it.
type walk struct {
	r      *Reader
	p      *plan
	months []schemas.Month // not loaded yet, in the page's direction
	stride int             // how many of them to load next
	queue  []part          // loaded and not read yet, likewise
	events []due           // above the checkpoints
	seen   map[string]bool // frames that were opened, by their bytes
	read   []string        // public names of the shards that were read
	// freshBytes are those of frames that were opened, encoded; cut says that some
	// were not.
	freshBytes int
	cut        atomic.Bool
	// others: EVENTS has messages above the checkpoints that are not frames, such as bare
	// JSON. Their events are read in SHARDS.
	others  atomic.Bool
	missing atomic.Bool // frames above a head had left SHARDS
	gone    bool        // frames were purged while they were counted
}

// part is a shard as the walk found it.
type part struct {
	registry.Shard // its range is exact where all of it is stored
	// stored is what ClickHouse has of it, up to the head. Of a closed shard only
	// the registry is asked: it is stored whole.
	stored schemas.Stored
	// tail is the shard's last frame in SHARDS, when that is above the head.
	tail *streams.Tail
}

func (s *part) key() schemas.ShardRef { return s.Ref() }

// open says that it may get rows while it is read.
func (s *part) open() bool { return s.Status != registry.Closed }

// begin begins the walk of a plan. Its standing is read again where the connection was
// lost since, for the streams may have been restored below it, and where bare JSON came
// behind it, which may be routed by now.
func (r *Reader) begin(ctx context.Context, p *plan) (*walk, error) {
	w, err := r.walk(ctx, p)
	if ctx.Err() == nil && (p.standing.epoch != r.dir.epoch() || err == nil && w.others.Load() && p.standing.read.Before(p.eventsSince)) {
		if p.standing, err = r.stand(ctx, p.topic.Name); err != nil {
			return nil, err
		}
		p.eventsSince = p.standing.read
		w, err = r.walk(ctx, p)
	}
	return w, err
}

func (r *Reader) walk(ctx context.Context, p *plan) (*walk, error) {
	w := &walk{r: r, p: p, stride: 1, seen: map[string]bool{}}
	var loaded []schemas.Month
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(freshReaders)
	g.Go(func() error {
		if w.months = p.months(); w.months == nil {
			heads, err := r.reg.Heads(gctx, p.topic.Name)
			if err != nil {
				return err
			}
			for _, h := range heads {
				if h.Month.End() > p.lower() && h.Month.Start() <= p.upper() {
					w.months = append(w.months, h.Month)
				}
			}
		}
		if !p.asc {
			slices.Reverse(w.months)
		}
		months := w.months
		err := w.load(gctx, MaxPageShards)
		loaded = months[:len(months)-len(w.months)]
		return err
	})
	g.Go(func() (err error) { w.events, err = w.unrouted(gctx); return err })
	err := g.Wait()
	if err == nil {
		r.readOnAhead(p, loaded[:min(len(loaded), monthsAtOnce)])
	}
	return w, err
}

// load makes the queue longer than n, as long as there are months: the first
// alone, which most pages need, then some at once.
func (w *walk) load(ctx context.Context, n int) error {
	for len(w.queue) <= n && len(w.months) > 0 {
		loaded := make([][]part, min(len(w.months), w.stride))
		g, gctx := errgroup.WithContext(ctx)
		for i := range loaded {
			g.Go(func() (err error) {
				loaded[i], err = w.r.parts(gctx, w.p, w.months[i])
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		w.queue, w.months, w.stride = append(w.queue, slices.Concat(loaded...)...), w.months[len(loaded):], monthsAtOnce
	}
	return nil
}

// monthsAtOnce is how many months are asked at once: of a topic with one shard a
// month, those of one page.
const monthsAtOnce = MaxPageShards

// parts are the shards of a month that may have events in the page's range, in
// the page's direction.
func (r *Reader) parts(ctx context.Context, p *plan, m schemas.Month) ([]part, error) {
	entries, err := r.known.Overlapping(ctx, p.topic.Name, m, p.lower(), p.upper(), p.standing.read)
	if err != nil {
		return nil, err
	}
	var out []part
	var keys []schemas.ShardRef
	var subjects []string
	for _, s := range entries {
		if s.Gone() {
			continue
		}
		out = append(out, part{Shard: s, stored: schemas.Stored{Rows: s.Rows, MinTs: s.MinTs, MaxTs: s.MaxTs}})
		if out[len(out)-1].open() {
			r.heads.raise(s.ID, s.Floor)
			keys = append(keys, s.Ref())
			subjects = append(subjects, schemas.ShardSubject(p.topic.Name, m, s.ID))
		}
	}
	if len(keys) > 0 {
		stored, tails, asked, err := r.headsOf(ctx, p, keys, subjects)
		if err != nil {
			return nil, err
		}
		for i := range out {
			if out[i].open() {
				out[i].complete(stored, tails)
				if last, ok := tails[out[i].ID]; ok && out[i].tail == nil {
					r.wholeUpTo(&last, asked)
				}
			}
		}
		out = slices.DeleteFunc(out, func(s part) bool {
			return s.tail == nil && s.stored.Rows == 0 || !s.Overlaps(p.lower(), p.upper())
		})
	}
	slices.SortFunc(out, func(a, b part) int {
		if p.asc {
			return cmp.Or(cmp.Compare(a.MinTs, b.MinTs), cmp.Compare(a.ID, b.ID))
		}
		return cmp.Or(cmp.Compare(b.MaxTs, a.MaxTs), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// complete adds the head and the last frame of a shard that is not closed, and
// its exact range where all of it is stored.
func (s *part) complete(stored map[schemas.Shard]schemas.Stored, tails map[schemas.Shard]streams.Tail) {
	s.stored = stored[s.ID]
	s.stored.Head = s.Shard.Head(s.stored.Head)
	if last, ok := tails[s.ID]; ok {
		s.Rows, s.Bytes = last.ShardRows, last.ShardBytes
		if last.Pos > s.stored.Head {
			s.tail = &last
			return
		}
	}
	s.MinTs, s.MaxTs = s.stored.MinTs, s.stored.MaxTs
}

// lastInStream reads the last frames of shards' subjects.
func (r *Reader) lastInStream(ctx context.Context, subjects []string, into map[schemas.Shard]streams.Tail) error {
	err := streams.LatestOf(ctx, r.js, schemas.StreamShards, subjects, func(msg *streams.Message) error {
		t, err := streams.TailOf(msg)
		if err == nil { // what is not a frame is not a tail; verify names it
			into[t.Ref.ID] = t
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("query: last frames: %w", err)
	}
	return nil
}

// notes are what the reader should know of the answer.
func (w *walk) notes() []string {
	var notes []string
	if w.cut.Load() {
		notes = append(notes, fmt.Sprintf("more of this range is not stored yet than one answer reads, %d MiB or %d frames; events may be missing here until they are stored", maxFreshBytes>>20, maxHeadings))
	}
	if w.gone {
		notes = append(notes, "frames left the stream while they were counted; ask again for the exact count")
	}
	return notes
}
