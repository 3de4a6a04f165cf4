package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// freshFrame is a frame that ClickHouse may not have yet.
type freshFrame struct {
	schemas.Frame
	payload  []byte
	subject  string
	storedNs int64
}

// open reads the frame and judges it as the router does: what the router will
// keep as a dead letter is no event.
func (f *freshFrame) open(r *schemas.FrameReader, t *schemas.Topic) error {
	if err := r.Open(f.payload, t, f.Schema); err != nil {
		return err
	}
	month, err := schemas.MonthOfSubject(f.subject)
	if err != nil {
		return err
	}
	return r.Check(f.Frame, month, f.storedNs)
}

// Bounds of what one page reads of the streams, and of what one statement takes.
const (
	// maxFreshBytes is what both streams may hold above checkpoints and heads in
	// the page's range, encoded; more, and the page says that it left some out.
	maxFreshBytes = 128 << 20
	// maxStatementBytes is what goes to ClickHouse with one statement,
	// decompressed, give or take a frame.
	maxStatementBytes = 32 << 20
)

// freshRows reads the page's rows from the streams. It must be called before
// ClickHouse is asked.
func (r *Reader) freshRows(ctx context.Context, p *plan, page *Page) ([]row, error) {
	frames, cut, err := r.freshFrames(ctx, p)
	if err != nil {
		return nil, err
	}
	if cut {
		page.Notes = append(page.Notes, fmt.Sprintf("more than %d MiB of this range are not stored yet; only those were read, so events may be missing here until they are stored", maxFreshBytes>>20))
	}
	// In the page's direction, so that reading can stop when the page is full.
	slices.SortFunc(frames, func(a, b freshFrame) int {
		if p.asc {
			return cmp.Compare(a.MinTs, b.MinTs)
		}
		return cmp.Compare(b.MaxTs, a.MaxTs)
	})
	var rows []row
	seen := map[string]bool{}
	for len(frames) > 0 {
		if len(rows) > p.limit {
			last := rows[len(rows)-1].ts
			if p.asc && frames[0].MinTs > last || !p.asc && frames[0].MaxTs < last {
				break
			}
		}
		more, n, err := r.readFresh(ctx, p, frames, seen)
		if err != nil {
			return nil, err
		}
		rows = merge(rows, more, p)
		frames = frames[n:]
	}
	return rows, nil
}

// readFresh lets ClickHouse judge the first of the frames: those of one schema
// version, as many as one statement may take. It says how many they were. A frame
// that was routed while the streams were read is met in both; were it judged
// twice, its rows would take each other's place below the statement's limit, so
// seen remembers the frames by their bytes.
func (r *Reader) readFresh(ctx context.Context, p *plan, frames []freshFrame, seen map[string]bool) (rows []row, n int, err error) {
	var reader schemas.FrameReader
	var blocks [][]byte
	schema, size := frames[0].Schema, 0
	for ; n < len(frames) && frames[n].Schema == schema && size < maxStatementBytes; n++ {
		f := &frames[n]
		if seen[schemas.Digest(f.payload)] || f.open(&reader, &p.topic) != nil {
			continue
		}
		seen[schemas.Digest(f.payload)] = true // its checksum held, so the digest is its own
		blocks = append(blocks, slices.Clone(reader.Raw()))
		size += len(reader.Raw())
	}
	if len(blocks) == 0 {
		return nil, n, nil
	}
	cond, params := p.condition()
	rows, err = r.collect(ctx, &tables.Select{
		SQL:    fmt.Sprintf("SELECT %s FROM (%s) WHERE %s %s", columns(&p.topic), freshSource(&p.topic, schema, 0, 0), cond, p.order()),
		Params: params, Fresh: blocks, FreshStructure: p.topic.FrameStructure(schema),
	})
	return rows, n, err
}

// freshSource reads fresh blocks with the columns a stored row has: fields that
// came after the frame's schema version at their defaults, the given shard and
// pos (0 while there are none), and more.
func freshSource(t *schemas.Topic, schema int, shard schemas.Shard, pos uint64, more ...string) string {
	cols := append([]string{"*"}, more...)
	for _, f := range t.Fields[len(t.FieldsAt(schema)):] {
		cols = append(cols, f.DefaultSQL()+" AS "+schemas.QuoteName(f.Name))
	}
	cols = append(cols, "toUInt32(toYYYYMM(ts)) AS month", fmt.Sprintf("toUInt64(%d) AS shard", uint64(shard)), fmt.Sprintf("toUInt64(%d) AS pos", pos))
	return "SELECT " + strings.Join(cols, ", ") + " FROM " + tables.FreshTable
}

// freshFrames gathers the frames of the page's range that ClickHouse may not
// have. cut says that there were more than it may read.
func (r *Reader) freshFrames(ctx context.Context, p *plan) (frames []freshFrame, cut bool, err error) {
	// Positions first, then the streams in the way of an event.
	checkpoints, err := r.checkpoints(ctx, p.topic.Name)
	if err != nil {
		return nil, false, err
	}
	heads, err := r.db.Heads(ctx, p.topic.Name)
	if err != nil {
		return nil, false, err
	}
	c := &freshCollector{lo: p.lower(), hi: p.upper()}
	g, gctx := errgroup.WithContext(ctx)
	for lane := range p.topic.Lanes {
		token := strconv.Itoa(lane)
		g.Go(func() error {
			return registry.Read(gctx, r.js, schemas.StreamEvents, schemas.LaneFilter(p.topic.Name, token), checkpoints[token].Source+1, nil, c.take)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, false, err
	}
	tails, err := r.tails(ctx, schemas.ShardsFilter(p.topic.Name), nil)
	if err != nil {
		return nil, false, err
	}
	g, gctx = errgroup.WithContext(ctx)
	g.SetLimit(freshReaders)
	for _, t := range tails {
		if t.Pos <= heads[t.shard] {
			continue
		}
		g.Go(func() error {
			from, err := registry.FindFrame(gctx, r.shards, t.subject, heads[t.shard]+1, t.seq)
			if err != nil {
				return err
			}
			return registry.Read(gctx, r.js, schemas.StreamShards, t.subject, from, nil, c.take)
		})
	}
	err = g.Wait()
	return c.frames, c.cut, err
}

// freshReaders bounds the requests to the streams under way for one page.
const freshReaders = 8

// freshCollector keeps the frames of a time range, up to maxFreshBytes.
type freshCollector struct {
	lo, hi int64

	mu     sync.Mutex
	bytes  int
	cut    bool
	frames []freshFrame
}

// take takes a message of either stream; false stops reading.
func (c *freshCollector) take(msg *jetstream.RawStreamMsg) (bool, error) {
	f, err := schemas.ParseFrame(msg.Header)
	if err != nil || f.MaxTs < c.lo || f.MinTs > c.hi {
		return true, nil // bare JSON is read once it is routed; a broken frame is no event
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += len(msg.Data); c.bytes > maxFreshBytes {
		c.cut = true
		return false, nil
	}
	c.frames = append(c.frames, freshFrame{f, msg.Data, msg.Subject, msg.Time.UnixNano()})
	return true, nil
}
