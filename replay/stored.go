package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Bounds of what one statement of ClickHouse sorts and of what is held of its
// answer.
const (
	// windowRows is how many rows one statement asks for, give or take a position:
	// some 100 MiB to sort for the server.
	windowRows = 500_000
	// windowPositions is how many positions it spans at most.
	windowPositions = 50_000
	// blockRows is how many rows a block of the answer has.
	blockRows = 8192
	// maxBlockBytes bounds one such block: 8,192 events of the largest kind could
	// have 512 MiB, and are asked for in smaller blocks.
	maxBlockBytes = 64 << 20
)

// group is a position's rows of the job's range, as ClickHouse has them.
type group struct{ pos, rows uint64 }

// readStored gives f the units of a shard's rows in ClickHouse of positions from from up to upTo, which
// SHARDS does not have any more. A position without such rows gives no unit: they were
// erased, or are not the job's. What is in neither place is ErrLost (absent.go).
func (j *Job) readStored(ctx context.Context, s *shard, from, upTo uint64, b brought, f func(*unit) error) error {
	there := func() error { return j.checkStored(ctx, s, from, upTo) }
	if err := there(); err != nil {
		return err
	}
	if err := j.checkAbsent(ctx, s, from, upTo, b); err != nil {
		return err
	}
	cond, params, err := j.storedCondition(ctx, s)
	if err != nil {
		return err
	}
	return eachWindow(from-1, upTo,
		func(after uint64) ([]group, error) { return j.groups(ctx, s, cond, params, after, upTo) }, there,
		func(after uint64, groups []group) error {
			return j.readGroups(ctx, s, cond, params, after, groups, f)
		})
}

// eachWindow reads the positions after one, up to upTo, window by window. A window passes over positions without rows, and so it is
// asked after each list whether the shard is there still: a table that is emptied lists none.
func eachWindow(after, upTo uint64, list func(after uint64) ([]group, error), there func() error, read func(after uint64, groups []group) error) error {
	for after < upTo {
		groups, err := list(after)
		if err == nil {
			err = there()
		}
		if err != nil || len(groups) == 0 {
			return err
		}
		if err := read(after, groups); err != nil {
			return err
		}
		after = groups[len(groups)-1].pos
	}
	return nil
}

// checkStored refuses positions up to upTo that were not stored, or are lost since.
func (j *Job) checkStored(ctx context.Context, s *shard, from, upTo uint64) error {
	head, err := j.head(ctx, s, upTo)
	if err == nil && head < upTo {
		err = fmt.Errorf("%w: %d to %d of %s are neither in %s nor in ClickHouse; run `almanac verify %s`",
			ErrLost, max(from, head+1), upTo, s.Name(), schemas.StreamShards, s.Topic)
	}
	return err
}

// head is up to where all of a shard was stored: where ClickHouse has rows of upTo or later, or what
// the registry says when those that carried it are gone on purpose.
func (j *Job) head(ctx context.Context, s *shard, upTo uint64) (uint64, error) {
	head, err := j.r.cfg.DB.Head(ctx, s.Ref())
	if err != nil || head >= upTo {
		return head, err
	}
	entry, err := j.r.cfg.Registry.Shard(ctx, s.Ref())
	if err != nil {
		return 0, err
	}
	return entry.Head(head), nil
}

// groups lists the positions after one, as many as make a window.
func (j *Job) groups(ctx context.Context, s *shard, cond string, params map[string]string, after, upTo uint64) ([]group, error) {
	body, err := j.r.cfg.DB.Select(ctx, &tables.Select{
		SQL:    sql.Positions{Table: j.table(), Where: cond, Above: after, UpTo: upTo, Limit: windowPositions}.SQL(),
		Params: params, Settings: readSettings,
	})
	if err != nil {
		return nil, fmt.Errorf("replay: positions of %s: %w", s.Name(), err)
	}
	defer func() { _ = body.Close() }()
	out, err := scanGroups(body, windowRows)
	if err != nil {
		return nil, fmt.Errorf("replay: positions of %s: %w", s.Name(), err)
	}
	return out, nil
}

// readGroups gives f the units of a window.
func (j *Job) readGroups(ctx context.Context, s *shard, cond string, params map[string]string, after uint64, groups []group, f func(*unit) error) error {
	settings := maps.Clone(readSettings)
	settings["max_block_size"] = strconv.Itoa(blockRows)
	body, err := j.r.cfg.DB.Select(ctx, &tables.Select{
		SQL: sql.StoredRows{
			Table: j.table(), Where: cond, Columns: sql.StoredColumns(&j.topic), Above: after, UpTo: groups[len(groups)-1].pos, IDOrderSQL: schemas.IDOrderSQL,
		}.SQL(),
		Params: params, Settings: settings,
	})
	if err != nil {
		return fmt.Errorf("replay: rows of %s: %w", s.Name(), err)
	}
	defer func() { _ = body.Close() }()
	c := cutter{shard: s, groups: groups, give: f}
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

// cutter cuts blocks into units, one for each position.
type cutter struct {
	shard  *shard
	groups []group
	give   func(*unit) error

	row  uint64 // of the present position, taken so far
	open []piece
}

func (c *cutter) take(b *storedBlock) error {
	for from := 0; from < b.reader.Rows(); {
		if len(c.groups) == 0 {
			return errChanged(c.shard)
		}
		g := c.groups[0]
		n := int(min(g.rows-c.row, uint64(b.reader.Rows()-from)))
		for i := range n {
			if b.reader.StoredPos(from+i) != g.pos {
				return errChanged(c.shard)
			}
		}
		c.open = append(c.open, piece{b, from, from + n})
		from, c.row = from+n, c.row+uint64(n)
		if c.row < g.rows {
			continue // the rest is in the next block
		}
		u := &unit{shard: c.shard, end: position{Number: g.pos}, pieces: c.open, expected: int(g.rows)}
		c.groups, c.row, c.open = c.groups[1:], 0, nil
		if err := c.give(u); err != nil {
			return err
		}
	}
	return nil
}

// end checks that everything came.
func (c *cutter) end() error {
	if len(c.groups) > 0 {
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
