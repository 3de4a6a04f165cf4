package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

// Bounds of what one statement of ClickHouse sorts and of what is held of its
// answer.
const (
	// windowRows is how many rows one statement asks for, give or take an insert:
	// some 100 MiB to sort for the server.
	windowRows = 500_000
	// windowInserts is how many inserts it spans at most.
	windowInserts = 10_000
	// blockRows is how many rows a block of the answer has.
	blockRows = 8192
	// maxBlockBytes bounds one such block: 8,192 events of the largest kind could
	// have 512 MiB, and are asked for in smaller blocks.
	maxBlockBytes = 64 << 20
)

// insert is an insert's rows of the job's range, as ClickHouse has them.
type insert struct{ pos, rows uint64 }

// readStored gives f the units of a shard's rows in ClickHouse with a number above
// after, up to the position upTo, which is an insert's last.
func (j *Job) readStored(ctx context.Context, s *shard, after mark, upTo uint64, f func(*unit) error) error {
	cond, params, err := j.storedCondition(ctx, s)
	if err != nil {
		return err
	}
	begin := max(after.Number, s.from-1)
	if after.Stored { // units of the insert that the cursor stands in are numbered from its beginning
		begin = after.Begin
	}
	for begin < upTo {
		inserts, err := j.inserts(ctx, s, cond, params, begin, upTo)
		if err != nil || len(inserts) == 0 {
			return err
		}
		if err := j.readInserts(ctx, s, cond, params, begin, inserts, after, f); err != nil {
			return err
		}
		begin = inserts[len(inserts)-1].pos
	}
	return nil
}

// inserts lists those behind a position, as many as make a window.
func (j *Job) inserts(ctx context.Context, s *shard, cond string, params map[string]string, begin, upTo uint64) ([]insert, error) {
	body, err := j.r.cfg.DB.Select(ctx, &tables.Select{
		SQL: fmt.Sprintf("SELECT pos, count() FROM %s WHERE %s AND pos > %d AND pos <= %d GROUP BY pos ORDER BY pos LIMIT %d FORMAT TSV",
			j.table(), cond, begin, upTo, windowInserts),
		Params: params, Settings: readSettings,
	})
	if err != nil {
		return nil, fmt.Errorf("replay: positions of %s: %w", s.Name(), err)
	}
	defer func() { _ = body.Close() }()
	var out []insert
	for total := uint64(0); total < windowRows; {
		var in insert
		if _, err := fmt.Fscan(body, &in.pos, &in.rows); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("replay: positions of %s: %w", s.Name(), err)
		}
		total += in.rows
		out = append(out, in)
	}
	return out, nil
}

// readInserts gives f the units of a window.
func (j *Job) readInserts(ctx context.Context, s *shard, cond string, params map[string]string, begin uint64, inserts []insert, after mark, f func(*unit) error) error {
	settings := maps.Clone(readSettings)
	settings["max_block_size"] = strconv.Itoa(blockRows)
	body, err := j.r.cfg.DB.Select(ctx, &tables.Select{
		SQL: fmt.Sprintf("SELECT %s FROM %s WHERE %s AND pos > %d AND pos <= %d ORDER BY pos, ts, toUInt128(id) FORMAT Native",
			j.topic.StoredColumns(), j.table(), cond, begin, inserts[len(inserts)-1].pos),
		Params: params, Settings: settings,
	})
	if err != nil {
		return fmt.Errorf("replay: rows of %s: %w", s.Name(), err)
	}
	defer func() { _ = body.Close() }()
	c := cutter{shard: s, begin: begin, inserts: inserts, after: after, give: f}
	blocks := blockReader{src: body, topic: &j.topic}
	for {
		b, err := blocks.next()
		if errors.Is(err, io.EOF) {
			return c.end()
		}
		if err != nil {
			return fmt.Errorf("replay: rows of %s: %w", s.Name(), err)
		}
		if err := c.take(b); err != nil {
			return err
		}
	}
}

// cutter cuts blocks into units: an insert of rows that stands for the positions
// begin+1 to its own is cut into as many.
type cutter struct {
	shard   *shard
	begin   uint64
	inserts []insert
	after   mark // units up to its number were replayed
	give    func(*unit) error

	row  uint64 // of the present insert, taken so far
	part uint64 // of the present insert, from 0
	open []piece
}

// cut is where part number part of k ends, of an insert of so many rows.
func cut(rows, k, part uint64) uint64 { return rows * (part + 1) / k }

func (c *cutter) take(b *storedBlock) error {
	for from := 0; from < b.reader.Rows(); {
		if len(c.inserts) == 0 || b.reader.StoredPos(from) != c.inserts[0].pos {
			return errChanged(c.shard)
		}
		in := c.inserts[0]
		if c.after.Stored && c.after.Number > c.begin && c.after.Begin == c.begin && c.after.Of != in.rows {
			return fmt.Errorf("%w: %s: rows of the insert of position %d were erased while the job was in it; start a new job with --shard %s --from-pos %d",
				ErrPurged, c.shard.Name(), in.pos, c.shard.ID, c.begin+1)
		}
		k := min(in.pos-c.begin, in.rows)
		by := source{Stored: true}
		if in.pos-c.begin > 1 {
			by.Begin, by.Of = c.begin, in.rows
		}
		end := cut(in.rows, k, c.part)
		n := min(end-c.row, uint64(b.reader.Rows()-from))
		for i := range int(n) {
			if b.reader.StoredPos(from+i) != in.pos {
				return errChanged(c.shard)
			}
		}
		c.open = append(c.open, piece{b, from, from + int(n)})
		from, c.row = from+int(n), c.row+n
		if c.row < end {
			continue // the rest is in the next block
		}
		at := mark{Number: c.begin + 1 + c.part, Stored: true, Begin: c.begin, Of: in.rows}
		if c.part++; c.row == in.rows {
			at = mark{Number: in.pos, Stored: true, Begin: in.pos}
			c.begin, c.inserts, c.row, c.part = in.pos, c.inserts[1:], 0, 0
		}
		if err := c.flush(at, by); err != nil {
			return err
		}
	}
	return nil
}

func (c *cutter) flush(at mark, by source) error {
	u := &unit{shard: c.shard, end: at, by: by, pieces: c.open}
	for _, p := range c.open {
		u.expected += p.to - p.from
	}
	c.open = nil
	if at.Number <= c.after.Number {
		return nil
	}
	return c.give(u)
}

// end checks that everything came.
func (c *cutter) end() error {
	if len(c.inserts) > 0 {
		return errChanged(c.shard)
	}
	return nil
}

func errChanged(s *shard) error {
	return fmt.Errorf("%w: %s: rows were erased while they were read; take the job up again", ErrChanged, s.Name())
}

// blockReader cuts an answer in the Native format into its blocks.
type blockReader struct {
	src   io.Reader
	topic *schemas.Topic
	buf   []byte
	size  int // of the block before: about how much the next one needs
	eof   bool
}

func (r *blockReader) next() (*storedBlock, error) {
	want := r.size
	for {
		for !r.eof && len(r.buf) < max(want, 1) {
			if err := r.fill(max(want-len(r.buf), 64<<10)); err != nil {
				return nil, err
			}
		}
		if len(r.buf) == 0 {
			return nil, io.EOF
		}
		b := &storedBlock{}
		n, err := b.reader.OpenStored(r.buf, r.topic)
		switch {
		case err == nil:
			// The block keeps the buffer; the rest begins a new one.
			rest := r.buf[n:]
			r.buf = append(make([]byte, 0, max(n, len(rest))+64<<10), rest...)
			if r.size = n; b.reader.Rows() == 0 {
				want = 0
				continue
			}
			return b, nil
		case r.eof:
			return nil, err
		case len(r.buf) > maxBlockBytes:
			return nil, fmt.Errorf("a block of more than %d bytes: %w", maxBlockBytes, err)
		}
		want = len(r.buf) + len(r.buf)/2 + 64<<10
	}
}

func (r *blockReader) fill(n int) error {
	at := len(r.buf)
	if cap(r.buf)-at < n {
		grown := make([]byte, at, at+n)
		copy(grown, r.buf)
		r.buf = grown
	}
	got, err := io.ReadAtLeast(r.src, r.buf[at:at+n], 1)
	r.buf = r.buf[:at+got]
	if errors.Is(err, io.EOF) {
		r.eof, err = true, nil
	}
	return err
}

// readSettings bound every statement of a replay: a window, not a page.
var readSettings = map[string]string{
	"max_execution_time":                    strconv.Itoa(int(windowTime.Seconds())),
	"http_write_exception_in_output_format": "0",
	"prefer_column_name_to_alias":           "1",
	"max_bytes_before_external_sort":        "1000000000",
}

// windowTime is far above what a window takes, also while its reader is slow: the
// answer waits in the socket then.
const windowTime = time.Hour
