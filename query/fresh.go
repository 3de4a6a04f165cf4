package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

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
	source   uint64 // sequence in EVENTS
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
	if err := t.CheckKeep(month, time.Unix(0, f.storedNs)); err != nil {
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

// freshRows lets ClickHouse judge frames and returns their rows.
func (r *Reader) freshRows(ctx context.Context, p *plan, frames []freshFrame, seen map[string]bool) (rows []row, err error) {
	// In the page's direction, so that reading can stop when the page is full.
	slices.SortFunc(frames, func(a, b freshFrame) int {
		if p.asc {
			return cmp.Compare(a.MinTs, b.MinTs)
		}
		return cmp.Compare(b.MaxTs, a.MaxTs)
	})
	for len(frames) > 0 {
		if len(rows) > p.limit && p.beyond(p.near(frames[0].MinTs, frames[0].MaxTs), rows[p.limit].ts) {
			break
		}
		chunk := freshChunk(&p.topic, frames, seen, p.ledger)
		if len(chunk.blocks) > 0 {
			cond, params := p.condition(p.lower(), p.upper())
			keep, erased := p.ledger.Covering(chunk.source, p.lower(), p.upper()).Keep()
			maps.Copy(params, erased)
			cond += " AND " + keep
			more, err := r.collect(ctx, &tables.Select{
				SQL:    fmt.Sprintf("SELECT %s FROM (%s) WHERE %s %s", p.columns(params), tables.FreshSource(&p.topic, chunk.schema, 0, 0), cond, p.order()),
				Params: params, Fresh: chunk.blocks, FreshStructure: p.topic.FrameStructure(chunk.schema),
			})
			if err != nil {
				return nil, err
			}
			rows = merge(rows, more, p)
		}
		frames = frames[chunk.frames:]
	}
	return rows, nil
}

// chunk is frames of one schema version that the same erasures may concern, as
// many as one statement may take.
type chunk struct {
	schema int
	source uint64 // of the first
	frames int    // how many it was made of
	blocks [][]byte
}

// freshChunk opens the first of the frames. A frame that was routed while the
// streams were read is met in both; were it judged twice, its rows would take
// each other's place below the statement's limit, so seen remembers the frames by
// their bytes.
func freshChunk(t *schemas.Topic, frames []freshFrame, seen map[string]bool, ledger *registry.Ledger) (c chunk) {
	var reader schemas.FrameReader
	size := 0
	c.schema, c.source = frames[0].Schema, frames[0].source
	for ; c.frames < len(frames) && size < maxStatementBytes; c.frames++ {
		f := &frames[c.frames]
		if f.Schema != c.schema || ledger.Depth(f.source) != ledger.Depth(c.source) {
			break
		}
		if seen[schemas.Digest(f.payload)] || f.open(&reader, t) != nil {
			continue
		}
		seen[schemas.Digest(f.payload)] = true // its checksum held, so the digest is its own
		c.blocks = append(c.blocks, slices.Clone(reader.Raw()))
		size += len(reader.Raw())
	}
	return c
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
	source := msg.Sequence
	if _, _, _, err := schemas.ParseShardSubject(msg.Subject); err == nil {
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil {
			return true, nil
		}
		source = p.SourceSeq
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bytes += len(msg.Data); c.bytes > maxFreshBytes {
		c.cut = true
		return false, nil
	}
	c.frames = append(c.frames, freshFrame{f, msg.Data, msg.Subject, msg.Time.UnixNano(), source})
	return true, nil
}

// drain hands out what was taken since the last time; the bound goes on.
func (c *freshCollector) drain() []freshFrame {
	c.mu.Lock()
	defer c.mu.Unlock()
	frames := c.frames
	c.frames = nil
	return frames
}
