package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/maintenance/erasure"
	"github.com/almanac-events/almanac/maintenance/rebuild"
	"github.com/almanac-events/almanac/maintenance/repair"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
)

// stored waits until what a topic accepted is in ClickHouse.
func (m *metered) stored(topic string) {
	m.t.Helper()
	if n, err := m.read.WaitStored(m.ctx, []string{topic}, recoveryLimit, nil); err != nil || n > 0 {
		m.t.Fatalf("%d events of %s are not stored: %v", n, topic, err)
	}
}

// allDerived reports what of a topic is not examined or summed yet.
func (m *metered) allDerived(ctx context.Context, topic string) error {
	t := m.topic
	t.Name = topic
	d, err := m.db.Derived(ctx, &t)
	if err != nil {
		return err
	}
	entries, err := m.reg.Shards(ctx, topic, 0)
	if err != nil {
		return err
	}
	gone := registry.DroppedOf(entries)
	for ref, s := range d.Shards {
		if why := s.Waits(); why != "" && !gone[ref] {
			return fmt.Errorf("%s: %s", ref, why)
		}
	}
	return nil
}

// derive waits for repeats and sums, and asks for every bill meanwhile.
func (m *metered) derive() {
	m.t.Helper()
	m.during(func(ctx context.Context) error {
		for _, topic := range m.topics {
			if err := errors.Join(m.bills(ctx, topic), m.allDerived(ctx, topic)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, topic := range m.topics {
		m.counted("derived", topic)
	}
}

// loseSums takes rows out of the sums behind everybody's back: verify names the shard, bills are the same, and the sums heal.
func (m *metered) loseSums() {
	m.t.Helper()
	m.Rollups[0].Kill() // so that verify comes before they heal
	sums := schemas.QuotedTable(m.db.Database, "usage.sums")
	if err := m.db.Conn().Exec(m.ctx, "ALTER TABLE "+sums+" DELETE WHERE space = 's1' SETTINGS mutations_sync = 2"); err != nil {
		m.t.Fatal(err)
	}
	rep, err := m.verifier().Run(m.ctx, "usage")
	if err != nil {
		m.t.Fatal(err)
	}
	if named := rep.Topics[0].Derived; !rep.OK() || len(named) == 0 || !strings.Contains(named[0], "which its rows do not") {
		m.t.Errorf("verify: ok %t, %v, derived %v", rep.OK(), rep.Problems, named)
	}
	m.exact("a row of the sums lost")
	m.derive()
	if err := m.db.Conn().Exec(m.ctx, "TRUNCATE TABLE "+sums); err != nil {
		m.t.Fatal(err)
	}
	m.exact("all sums lost")
	m.derive()
}

// repair loses the partition with most rows, and brings it back.
func (m *metered) repair() {
	m.t.Helper()
	var month uint32
	var shard uint64
	if err := m.db.Conn().QueryRow(m.ctx, "SELECT month, shard FROM "+schemas.QuotedTable(m.db.Database, "usage")+" GROUP BY month, shard ORDER BY count() DESC LIMIT 1").Scan(&month, &shard); err != nil {
		m.t.Fatal(err)
	}
	if err := m.db.Conn().Exec(m.ctx, fmt.Sprintf("ALTER TABLE %s DROP PARTITION ID '%s'", schemas.QuotedTable(m.db.Database, "usage"), schemas.PartitionID(schemas.Month(month), schemas.Shard(shard)))); err != nil {
		m.t.Fatal(err)
	}
	m.during(func(ctx context.Context) error {
		r, err := repair.New(ctx, repair.Config{NC: m.NC, Registry: m.reg, DB: m.db, Judge: router.FramesOf(nil)})
		if err != nil {
			return err
		}
		p, err := r.Plan(ctx, "usage")
		if err == nil && p.Todo() > 0 {
			err = r.Apply(ctx, p, func(*repair.Action, error) {})
		}
		if err != nil {
			return err
		}
		if rep, err := m.verifier().Run(ctx, "usage"); err != nil || !rep.OK() || rep.Pending > 0 {
			return fmt.Errorf("verify: %+v, %w", rep, err)
		}
		return nil
	})
	m.exact("repaired, not derived")
	m.derive()
}

func (m *metered) rebuild(topic string) {
	m.t.Helper()
	m.during(func(ctx context.Context) error {
		_, err := rebuild.Run(ctx, rebuild.Config{NATS: m.NC, Registry: m.reg, DB: m.db}, topic, true)
		return err
	})
	m.exact("rebuilt, not derived")
	m.derive()
}

func (m *metered) replay() {
	m.t.Helper()
	id, done := "", false
	m.during(func(ctx context.Context) error {
		if done {
			return nil
		}
		r, err := replay.New(ctx, replay.Config{NATS: m.NC, Registry: m.reg, DB: m.db, Reader: m.read})
		if err != nil {
			return err
		}
		var j *replay.Job
		if id == "" {
			j, err = r.Begin(ctx, replay.Request{Topic: "usage", Into: "copy"})
		} else {
			j, err = r.Resume(ctx, id)
		}
		if done = errors.Is(err, replay.ErrDone); done {
			return nil
		}
		if err != nil {
			return err
		}
		id = j.ID()
		res, err := j.Run(ctx, nil, replay.Pace{})
		if done = res.Done; err == nil && !done {
			err = errors.New("the replay is not done")
		}
		return err
	})
	m.stored("copy")
	m.topics = append(m.topics, "copy")
	m.exact("replayed, not derived")
	m.derive()
}

// erase erases a customer from both topics, and looks for what is left of his.
func (m *metered) erase() {
	m.t.Helper()
	x, err := erasure.New(m.ctx, erasure.Config{Registry: m.reg, Reader: m.read, DB: m.db})
	if err != nil {
		m.t.Fatal(err)
	}
	for _, topic := range m.topics {
		table := schemas.QuotedTable(m.db.Database, topic)
		var ids []string
		if err := m.db.Conn().QueryRow(m.ctx, "SELECT groupArray(toString(id)) FROM "+table+" WHERE user_id = 'cust-s5'").Scan(&ids); err != nil || len(ids) != meterTimes {
			m.t.Fatalf("%v, %v", ids, err)
		}
		e, err := x.Start(m.ctx, erasure.Request{Topic: topic, Users: []string{"cust-s5"}})
		if err != nil {
			m.t.Fatal(err)
		}
		m.during(func(ctx context.Context) error {
			_, err := x.Run(ctx, topic, e.ID)
			return err
		})
		p, err := x.Show(m.ctx, topic, e.ID)
		if err != nil || !p.Certified || p.Erasure.Rows != meterTimes {
			m.t.Errorf("%+v, %v", p, err)
		}
		of := func(derived string) string {
			return schemas.QuotedTable(m.db.Database, schemas.DerivedTable(topic, derived))
		}
		his := "('" + strings.Join(ids, "','") + "')"
		for _, q := range []string{
			"SELECT count() FROM " + table + " WHERE user_id = 'cust-s5' OR space = 's5' OR id IN " + his,
			"SELECT count() FROM " + of(schemas.DerivedSums) + " WHERE user_id = 'cust-s5' OR space = 's5'",
			"SELECT count() FROM " + of(schemas.DerivedRepeats) + " WHERE id IN " + his + " OR first IN " + his,
		} {
			if n, err := m.SQL.Number(m.ctx, "%s", q); err != nil || n != 0 {
				m.t.Errorf("%s: %d, %v", q, n, err)
			}
		}
	}
	m.gone["s5"] = true
	m.exact("erased, not derived")
	m.derive()
}

// drop has retention drop the rows of both topics: not before they are summed.
func (m *metered) drop() {
	m.t.Helper()
	m.Rollups[0].Kill()
	for _, topic := range m.topics {
		if err := m.db.Conn().Exec(m.ctx, "TRUNCATE TABLE "+schemas.QuotedTable(m.db.Database, schemas.DerivedTable(topic, schemas.DerivedSums))); err != nil {
			m.t.Fatal(err)
		}
		keep := m.topic
		keep.Name, keep.KeepDays = topic, 30
		if _, _, err := m.reg.Apply(m.ctx, keep, false); err != nil {
			m.t.Fatal(err)
		}
	}
	for _, s := range m.Sinks { // a shard is left alone on its first day
		s.Kill()
		s.Spec.Ahead = 25 * time.Hour
		m.start(s)
		m.ready(s)
	}
	shards := func(ctx context.Context, want registry.Status) error {
		for _, topic := range m.topics {
			entries, err := m.reg.Shards(ctx, topic, 0)
			for i := range entries {
				if err == nil && entries[i].Status != want {
					err = fmt.Errorf("%s is %s", entries[i].Name(), entries[i].Status)
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := until(m.ctx, recoveryLimit, 100*time.Millisecond, func(ctx context.Context) error { return shards(ctx, registry.Closed) }); err != nil {
		m.t.Fatal(err)
	}
	m.exact("closed, and not summed")
	m.during(func(ctx context.Context) error { return shards(ctx, registry.Dropped) })
	m.dropped = true
	for _, topic := range m.topics {
		if n, err := m.SQL.Number(m.ctx, "SELECT count() FROM %s", schemas.QuotedTable(m.db.Database, topic)); err != nil || n != 0 {
			m.t.Errorf("%s: %d rows, %v", topic, n, err)
		}
	}
}
