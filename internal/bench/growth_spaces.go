package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/query"
	bills "github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
	kind "github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// A meter's diffs of one month: so many in each space, over so many shards.
const (
	spaceDiffs  = 100
	spaceShards = 4
)

// growSpaces gives one meter more and more spaces with as many diffs each, and measures after
// each step: the bill of one space, and those of all from sums and from rows.
func growSpaces(ctx context.Context, s *Suite) ([]Curve, error) {
	h, err := s.Environment(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	m := meterOf{cfg: s.config(h, Config{}), month: schemas.MonthOf(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC).UnixNano())}
	if err := m.declare(ctx); err != nil {
		return nil, err
	}
	over := fmt.Sprintf("spaces of %d diffs each", spaceDiffs)
	curves := []Curve{
		{Name: "spaces-one", What: "the bill of one space's month", Over: over, Unit: unitMillis},
		{Name: "spaces-sums", What: "the bills of all spaces, with sums", Over: over, Unit: unitMicros + " a space"},
		{Name: "spaces-rows", What: "the bills of all spaces, from rows and marks", Over: over, Unit: unitMicros + " a space"},
	}
	have := 0
	for _, n := range []int{1_000, 10_000, 100_000} {
		n = s.size(n*spaceDiffs) / spaceDiffs
		if err := m.fill(ctx, have, n); err != nil {
			return nil, err
		}
		have = n
		costs, err := m.costs(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("%d spaces: %w", n, err)
		}
		for i := range curves {
			curves[i].Points = append(curves[i].Points, Point{float64(n), costs[i]})
		}
	}
	return curves, nil
}

// meterOf is a topic of kind meter on a cluster.
type meterOf struct {
	cfg   Config
	topic schemas.Topic
	month schemas.Month
	read  *bills.Reader
	pos   int // of what was filled
}

func (m *meterOf) declare(ctx context.Context) (err error) {
	if m.topic, err = (schemas.Topic{Name: m.cfg.topicName(0), Kind: kind.Meter}).Declared(); err != nil {
		return err
	}
	if m.topic, _, err = m.cfg.Registry.Apply(ctx, m.topic, false); err != nil {
		return err
	}
	if err := m.cfg.DB.Ensure(ctx, &m.topic); err != nil {
		return err
	}
	r, err := query.New(m.cfg.NATS, m.cfg.Registry, m.cfg.DB)
	if err == nil {
		m.read = bills.New(r)
	}
	return err
}

// fill stores the diffs of the spaces numbered from up to to, each space's over all shards and
// inserts, and derives what is derived.
func (m *meterOf) fill(ctx context.Context, from, to int) error {
	const insert = 1_000_000
	spaces, rows := max(1, to-from), (to-from)*spaceDiffs
	for done := 0; done < rows; done += insert {
		m.cfg.Progress("filling", done, rows)
		m.pos++
		q := fmt.Sprintf(`INSERT INTO %s (ts, id, type, user_id, provider, space, cause, delta, month, shard, pos)
SELECT fromUnixTimestamp64Milli(toInt64(%d + (number * 7919) %% 2400000000), 'UTC'), generateUUIDv7(number + %d), 'bytes', concat('cust-', toString(number %% 1000)), 'did:web:provider',
 concat('did:key:z6Mk', toString(%d + number %% %d)), concat('bafyreia', leftPad(toString(%d + number), 51, '0')), 1, %d, intDiv(number, %d) %% %d + 1, %d
FROM numbers(%d, %d) SETTINGS max_partitions_per_insert_block = 0, max_insert_block_size = 1000000`,
			sql.QuotedTable(m.cfg.DB.Database, m.topic.Name), m.month.Start()/1e6, from*spaceDiffs, from, spaces, from*spaceDiffs, uint32(m.month), spaces, spaceShards, m.pos, done, min(insert, rows-done))
		if err := m.cfg.DB.Conn().Exec(ctx, q); err != nil {
			return fmt.Errorf("filling %s: %w", m.topic.Name, err)
		}
	}
	var fault error
	u, err := rollups.New(rollups.Config{Registry: m.cfg.Registry, DB: m.cfg.DB, Hooks: rollups.Hooks{Fault: func(_ schemas.ShardRef, err error) { fault = err }}})
	if err != nil {
		return err
	}
	for more := true; more && fault == nil; {
		if more, err = u.Round(ctx); err != nil {
			return err
		}
	}
	return fault
}

// costs are medians: of the bill of one space in ms, of those of all from sums and from rows in
// µs a space.
func (m *meterOf) costs(ctx context.Context, spaces int) (costs [3]float64, err error) {
	from, to := time.Unix(0, m.month.Start()).UTC(), time.Unix(0, m.month.End()).UTC()
	for i, ask := range []struct {
		req   bills.Request
		count int
		times int
		unit  func(time.Duration) float64
	}{
		{bills.Request{From: from, To: to, Space: "did:key:z6Mk7"}, 1, 15, millis},
		{bills.Request{From: from, To: to, GroupBy: bills.BySpace}, spaces, 3, func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(spaces) }},
		// The end of the range cuts a day in which there are diffs, and sums tell only days apart.
		{bills.Request{From: from, To: from.Add(27*24*time.Hour + time.Hour), GroupBy: bills.BySpace}, spaces, 3, func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(spaces) }},
	} {
		var took samples
		for range ask.times {
			ask.req.Topic = m.topic.Name
			began, n := time.Now(), 0
			if err := m.read.Bills(ctx, ask.req, func(bills.Bill) error { n++; return nil }); err != nil {
				return costs, err
			}
			if n != ask.count {
				return costs, fmt.Errorf("bench: %d bills, there should be %d", n, ask.count)
			}
			took = append(took, time.Since(began))
		}
		costs[i] = ask.unit(took.quantile(0.5))
	}
	return costs, nil
}
