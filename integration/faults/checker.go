package faults

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/nats-io/nats.go"
)

// Checker compares what producers were told with what there is. It knows the names and the rules of the promise and
// shares no code with the parts: SQL over HTTP, headers read by a plain consumer, and the journals.
type Checker struct {
	NC        *nats.Conn
	SQL       *SQL
	Journals  string
	Corrupter *Corrupter
}

// Check compares everything. All producers must have ended and all events be stored.
func (h *Cluster) Check(ctx context.Context) (*Finding, error) {
	c := Checker{NC: h.NC, SQL: h.SQL, Journals: filepath.Join(h.Dir, "journals"), Corrupter: h.Corrupter}
	return c.Check(ctx)
}

// Check compares everything.
func (c *Checker) Check(ctx context.Context) (*Finding, error) {
	v := &Finding{}
	if err := c.numbers(ctx, v); err != nil {
		return nil, fmt.Errorf("faults: comparing numbers: %w", err)
	}
	if err := c.ids(ctx, v); err != nil {
		return nil, fmt.Errorf("faults: comparing ids: %w", err)
	}
	if err := c.positions(ctx, v); err != nil {
		return nil, fmt.Errorf("faults: comparing positions: %w", err)
	}
	if err := c.deadLetters(ctx, v); err != nil {
		return nil, fmt.Errorf("faults: comparing dead letters: %w", err)
	}
	return v, nil
}

// numbers compares the journals with the rows.
func (c *Checker) numbers(ctx context.Context, v *Finding) error {
	journals, err := ReadJournals(c.Journals)
	if err != nil {
		return err
	}
	found := map[uint64]*Set{}
	for number := range journals {
		found[number] = &Set{}
	}
	err = c.SQL.Rows(ctx, 1, fmt.Sprintf("SELECT toUInt64OrZero(message) FROM %s WHERE service = '%s' AND type = 'numbered'", Topic, Service), func(row []uint64) error {
		producer, n := row[0]>>32, row[0]&(1<<32-1)
		told, seen := journals[producer], found[producer]
		switch {
		case told == nil || n == 0 || n > told.Reserved:
			v.Invented = append(v.Invented, row[0])
		case !seen.Add(n):
			v.Twice = append(v.Twice, row[0])
		default:
			v.Found++
			if !told.Stored.Has(n) {
				v.Unknown++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for number, told := range journals {
		v.Told += told.Stored.Len()
		v.GivenUp += told.GivenUp.Len()
		for _, n := range told.Stored.Without(found[number]) {
			v.Lost = append(v.Lost, number<<32|n)
		}
	}
	return nil
}

// ids looks for an id that stands twice.
func (c *Checker) ids(ctx context.Context, v *Finding) error {
	return c.SQL.Rows(ctx, 2, fmt.Sprintf("SELECT count(), uniqExact(id) FROM %s", Topic), func(row []uint64) error {
		if row[0] != row[1] {
			v.problem("%d rows have only %d ids", row[0], row[1])
		}
		return nil
	})
}
