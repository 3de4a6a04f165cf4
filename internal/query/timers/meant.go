package timers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/query/erased"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
	"github.com/almanac-events/almanac/schemas/timer"
)

// maxLives bounds the lives of one statement, whose parameters go into its URL.
const maxLives = 1000

// lookup is the condition of what is stored of the lives of some records, at most maxLives, with the value of its parameter:
// rows of a life are in the lane of its timer.
func lookup(records []*timer.Record) (where, lives string) {
	ids, lanes := make([]string, len(records)), make([]int, len(records))
	for i, r := range records {
		ids[i], lanes[i] = r.Life.String(), r.Key.Lane
	}
	return sql.InLanes(lanes...) + " AND life IN {lives:Array(String)}", "['" + strings.Join(ids, "','") + "']"
}

// MeantLives says of which lives of some records of a topic's timers something is stored that erasures mean.
func (a Archive) MeantLives(ctx context.Context, topic string, records []*timer.Record, by ledger.Cover) (map[schemas.ID]bool, error) {
	if err := schemas.ValidateTopicName(topic); err != nil {
		return nil, err
	}
	keep, params := by.Keep()
	out := map[schemas.ID]bool{}
	for some := range slices.Chunk(records, maxLives) {
		where, lives := lookup(some)
		answer, err := a.DB.Select(ctx, &tables.Select{
			SQL:    fmt.Sprintf("SELECT DISTINCT life FROM %s WHERE %s AND NOT (%s) FORMAT TSV", sql.QuotedTable(a.DB.Database, topic), where, keep),
			Params: withParams(params, "lives", lives),
			User:   a.User, Password: a.Password,
		})
		if errors.Is(err, tables.ErrNoTable) { // nothing was stored yet
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("timers: what is erased, in ClickHouse: %w", err)
		}
		lines := bufio.NewScanner(answer)
		for lines.Scan() {
			if life, err := schemas.ParseID(lines.Text()); err == nil {
				out[life] = true
			}
		}
		if err := errors.Join(lines.Err(), answer.Close()); err != nil {
			return nil, fmt.Errorf("timers: what is erased, in ClickHouse: %w", err)
		}
	}
	return out, nil
}

// MeantRecords says of each record of a topic's timers whether an erasure with a filter means it. Of one that was
// redacted the filter is not known any more: what it did not mean of that time was stored, and still is, for as long
// as the topic keeps it.
func (a Archive) MeantRecords(ctx context.Context, t *schemas.Topic, e *ledger.Erasure, records []*timer.Record) ([]bool, error) {
	if e.Redacted {
		return a.notStored(ctx, t, records)
	}
	rows := make([]erased.Row, len(records))
	for i, r := range records {
		var err error
		if rows[i], err = erased.OfTimer(r); err != nil {
			return nil, fmt.Errorf("timers: record %d: %w", r.Seq, err)
		}
	}
	meant, err := erased.Which(ctx, a.DB, t, e, rows)
	if err != nil {
		return nil, fmt.Errorf("timers: %w", err)
	}
	return meant, nil
}

// notStored says of each record whether its row is not there, though the topic keeps what is as old.
func (a Archive) notStored(ctx context.Context, t *schemas.Topic, records []*timer.Record) ([]bool, error) {
	type place struct {
		life string
		seq  uint64
	}
	there := map[place]bool{}
	for some := range slices.Chunk(records, maxLives) {
		where, lives := lookup(some)
		answer, err := a.DB.Select(ctx, &tables.Select{
			SQL:    fmt.Sprintf("SELECT DISTINCT life, seq FROM %s WHERE %s FORMAT TSV", sql.QuotedTable(a.DB.Database, t.Name), where),
			Params: withParams(nil, "lives", lives),
			User:   a.User, Password: a.Password,
		})
		if errors.Is(err, tables.ErrNoTable) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("timers: what is stored, in ClickHouse: %w", err)
		}
		lines := bufio.NewScanner(answer)
		for lines.Scan() {
			var p place
			if _, err := fmt.Sscan(lines.Text(), &p.life, &p.seq); err == nil {
				there[p] = true
			}
		}
		if err := errors.Join(lines.Err(), answer.Close()); err != nil {
			return nil, fmt.Errorf("timers: what is stored, in ClickHouse: %w", err)
		}
	}
	out, now := make([]bool, len(records)), time.Now()
	for i, r := range records {
		kept := !t.PastKeep(schemas.MonthOf(r.Changed), now)
		out[i] = kept && !there[place{r.Life.String(), r.Seq}]
	}
	return out, nil
}

// withParams adds names and values to parameters, which may be nil and stay as they are.
func withParams(params map[string]string, pairs ...string) map[string]string {
	out := map[string]string{}
	for k, v := range params {
		out[k] = v
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}
