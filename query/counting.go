package query

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/query/recent"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// cell is a bucket, by its number since 1970, and a value.
type cell struct {
	bucket int64
	value  string
}

// counting is a count under way, of a histogram or of values.
type counting struct {
	w     *walk
	step  Step
	cells map[cell]uint64
	// statement counts what one source has: rows of _bucket, _value and _n.
	statement func(from string) string
	// wide, when set, is the statement for rows that are stored, where many are counted.
	wide func(from string) string
	// params and settings are what the statement needs besides its condition's.
	params, settings map[string]string
	// most bounds the cells; 0: the statements bound them.
	most int
	// full, when set, ends the count of a sample before all of it is read.
	full func() bool
}

// enough reports whether a sample has all it needs.
func (c *counting) enough() bool { return c.full != nil && c.full() }

// fits refuses steps of which the range has too many, by what the registry and
// the frames say of it, and names one that fits. Who may read some rows alone gives the range: when the others are, is not said.
func (c *counting) fits(ctx context.Context) error {
	if c.step.None() {
		return nil
	}
	if p := c.w.p; filter.LimitOf(ctx) != "" && (p.from <= 1 || p.to == math.MaxInt64) {
		return fmt.Errorf("%w: a token with a row limit names the range of steps: give from and to", schemas.ErrRequest)
	}
	lo, hi := int64(math.MaxInt64), int64(0)
	for i := range c.w.queue {
		lo, hi = min(lo, c.w.queue[i].MinTs), max(hi, c.w.queue[i].MaxTs)
	}
	for i := range c.w.pending.Frames {
		f := &c.w.pending.Frames[i]
		lo, hi = min(lo, f.MinTs()), max(hi, f.MaxTs())
	}
	p := c.w.p
	if lo, hi = max(lo, p.from), min(hi, p.to); p.from > 1 {
		lo = p.from
	}
	if p.to < math.MaxInt64 {
		hi = p.to
	}
	if lo > hi {
		return nil // nothing there
	}
	if n := c.step.number(hi) - c.step.number(lo) + 1; n > MaxBuckets {
		return fmt.Errorf("%w: %s to %s in steps of %s are %d buckets, the limit is %d; a step of %s fits", schemas.ErrRequest,
			time.Unix(0, lo).UTC().Format(time.RFC3339), time.Unix(0, hi).UTC().Format(time.RFC3339), c.step, n, MaxBuckets, fitting(hi-lo))
	}
	return nil
}

// fitting is the shortest usual step of which a span (ns) has at most a hundred.
func fitting(span int64) string {
	for _, s := range usualSteps {
		if span/int64(s.d) <= 100 {
			return s.name
		}
	}
	return usualSteps[len(usualSteps)-1].name
}

var usualSteps = []struct {
	name string
	d    time.Duration
}{
	{"1ms", time.Millisecond}, {"10ms", 10 * time.Millisecond}, {"100ms", 100 * time.Millisecond},
	{"1s", time.Second}, {"5s", 5 * time.Second}, {"15s", 15 * time.Second},
	{"1m", time.Minute}, {"5m", 5 * time.Minute}, {"15m", 15 * time.Minute},
	{"1h", time.Hour}, {"6h", 6 * time.Hour}, {"1d", 24 * time.Hour}, {"1w", 7 * 24 * time.Hour}, {"4w", 28 * 24 * time.Hour}, {"52w", 364 * 24 * time.Hour},
}

// run counts the frames above the heads, and what is stored up to the heads.
func (c *counting) run(ctx context.Context) error {
	w := c.w
	above, err := w.above(ctx, w.queue)
	if err != nil {
		return err
	}
	defer func() {
		if w.gone {
			above.Gone() // who asks again has newer heads
		}
	}()
	routed, accepted := above.Frames, w.pending.Frames
	enough := func(*recent.Meta) bool { return c.enough() }
	if c.full != nil { // a sample has the newest
		recent.Sort(routed, false)
		recent.Sort(accepted, false)
	}
	gone, err := w.chunks(ctx, routed, enough, func(some []recent.Frame) error { return c.fresh(ctx, some) })
	if err != nil {
		return err
	}
	w.gone = gone || w.missing
	gone, err = w.chunks(ctx, recent.Unrepeated(accepted, routed), enough, func(some []recent.Frame) error {
		some, err := c.unseen(ctx, above, some)
		if err != nil {
			return err
		}
		return c.fresh(ctx, some)
	})
	if err != nil {
		return err
	}
	w.gone = w.gone || gone
	for i := range w.queue {
		w.read = append(w.read, w.queue[i].Name())
	}
	source := sql.QuotedTable(w.r.db.Database, w.p.topic.Name)
	for some := range statements(above) {
		if known := upToHeads(some); known != "" && !c.enough() {
			if err := c.count(ctx, &tables.Select{}, source, known+" AND "); err != nil {
				return err
			}
		}
	}
	return nil
}

// statements are the shards that one statement counts, in turn.
func statements(above *recent.Above) iter.Seq[*recent.Above] {
	return func(yield func(*recent.Above) bool) {
		n := len(above.Shards())
		for i := 0; i < n; i += histogramShards {
			if !yield(above.Part(i, min(i+histogramShards, n))) {
				return
			}
		}
	}
}

// upToHeads is a condition that selects the rows of shards up to the heads they
// had when the read began; "" when they do not have any.
func upToHeads(read *recent.Above) string {
	var keys []schemas.ShardRef
	var above strings.Builder
	shards := read.Shards()
	for i := range shards {
		s := &shards[i]
		if s.Stored().Rows == 0 {
			continue
		}
		keys = append(keys, s.Ref())
		if s.Open() {
			fmt.Fprintf(&above, " AND NOT (month = %d AND shard = %d AND pos > %d)", uint32(s.Month), uint64(s.ID), s.Stored().Head)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return tables.InShards(keys) + above.String()
}

// histogramShards is how many shards one statement counts, and lookUp how many events
// one looks for: some 100 bytes each of the 256 KiB that ClickHouse parses.
const (
	histogramShards = 1000
	lookUp          = 500
)

// unseen are the frames of EVENTS that are neither in SHARDS above a head nor
// stored up to one: a frame may have been routed, or even stored, since the
// checkpoints were read, or be one that a producer sent again. A frame is stored
// whole or not at all, so its first event tells; of a frame with events that were
// erased, any.
func (c *counting) unseen(ctx context.Context, above *recent.Above, frames []recent.Frame) ([]recent.Frame, error) {
	var reader frame.Reader
	owner, absent := map[schemas.ID]int{}, map[int]bool{}
	var pairs []string
	for i := range frames {
		f := &frames[i]
		if c.w.seen.has(namesOf(f, &c.w.p.topic)) || c.w.p.snapshot.Open(f, &reader, &c.w.p.topic) != nil {
			continue
		}
		if _, twice := owner[reader.ID(0)]; twice {
			continue // sent again: the router takes the first
		}
		absent[i] = true
		tell := 1
		if len(c.w.p.ledger.Covering(f.Source, f.MinTs, f.MaxTs)) > 0 {
			tell = reader.Rows()
		}
		for row := range tell {
			owner[reader.ID(row)] = i
			pairs = append(pairs, fmt.Sprintf("(fromUnixTimestamp64Nano(%d, 'UTC'), toUUID('%s'))", reader.Ts(row), reader.ID(row)))
		}
	}
	source := sql.QuotedTable(c.w.r.db.Database, c.w.p.topic.Name)
	for some := range slices.Chunk(pairs, lookUp) {
		for shards := range statements(above) {
			known := upToHeads(shards)
			if known == "" {
				continue
			}
			err := c.w.r.lines(ctx, &tables.Select{
				SQL:      fmt.Sprintf("SELECT id FROM %s WHERE %s AND (ts, id) IN (%s) FORMAT JSONEachRow", source, known, strings.Join(some, ",")),
				Settings: readSettings,
			}, func(line []byte) error {
				var stored struct{ ID string }
				if err := json.Unmarshal(line, &stored); err != nil {
					return err
				}
				id, err := schemas.ParseID(stored.ID)
				if i, ok := owner[id]; ok {
					delete(absent, i)
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	out := make([]recent.Frame, 0, len(absent))
	for i := range frames {
		if absent[i] {
			out = append(out, frames[i])
		}
	}
	return out, nil
}

// fresh counts the events of frames.
func (c *counting) fresh(ctx context.Context, frames []recent.Frame) error {
	t := &c.w.p.topic
	for len(frames) > 0 {
		some := freshChunk(c.w.p, frames, c.w.seen, func(_ *recent.Frame, r *frame.Reader) bool {
			return anyWithin(r, c.w.p.lower(), c.w.p.upper())
		})
		if len(some.blocks) > 0 {
			keep, params := c.w.p.ledger.Covering(some.source, c.w.p.lower(), c.w.p.upper()).Keep()
			s := &tables.Select{Params: params, Fresh: some.blocks, FreshStructure: t.FrameStructure(some.schema)}
			if err := c.count(ctx, s, "("+tables.FreshSource(t, some.schema, 0, 0)+")", keep+" AND "); err != nil {
				return err
			}
		}
		frames = frames[some.frames:]
	}
	return nil
}

// count adds what one statement counts.
func (c *counting) count(ctx context.Context, s *tables.Select, source, which string) error {
	cond, params := c.w.p.condition(c.w.p.lower(), c.w.p.upper())
	maps.Copy(params, s.Params)
	maps.Copy(params, c.params)
	s.Params, s.Settings = params, c.settings
	from, statement := source+" WHERE "+which+cond, c.statement
	if c.wide != nil && s.Fresh == nil {
		many, err := c.many(ctx, from, params)
		if err != nil {
			return err
		}
		if many {
			statement = c.wide
		}
	}
	s.SQL = statement(from) + " FORMAT JSONEachRow"
	return c.w.r.lines(ctx, s, func(line []byte) error {
		var got struct {
			Bucket int64  `json:"_bucket"`
			Value  string `json:"_value"`
			N      uint64 `json:"_n"`
		}
		if err := json.Unmarshal(line, &got); err != nil {
			return fmt.Errorf("query: ClickHouse's answer is not JSON: %w: %.200s", err, line)
		}
		if c.most > 0 && len(c.cells) >= c.most {
			return errGroups
		}
		c.cells[cell{got.Bucket, got.Value}] += got.N
		return nil
	})
}

// wideRows is from how many rows that meet a filter a wide statement is used: to look for them again for each field costs less than
// to copy their values, which takes 1.2 s for 1,000,000 rows of four fields (two cores, measured).
const wideRows = 2_000_000

// many reports whether a source has many rows: any without a filter, else as many as wideRows.
func (c *counting) many(ctx context.Context, from string, params map[string]string) (many bool, err error) {
	if c.w.p.where.All() {
		return true, nil
	}
	s := &tables.Select{SQL: "SELECT count() AS _n FROM " + from + " FORMAT JSONEachRow", Params: params, Settings: c.settings}
	err = c.w.r.lines(ctx, s, func(line []byte) error {
		var got struct {
			N uint64 `json:"_n"`
		}
		err := json.Unmarshal(line, &got)
		many = got.N >= wideRows
		return err
	})
	return many, err
}
