package faults

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// loseSums takes rows out of the sums behind everybody's back: verify names the shard, bills are the same, and the sums heal.
func (m *metered) loseSums() {
	m.t.Helper()
	m.Rollups[0].Kill() // so that verify comes before they heal
	sums := m.table("usage", schemas.DerivedSums)
	m.exec("ALTER TABLE " + sums + " DELETE WHERE space = 's1' SETTINGS mutations_sync = 2")
	rep, err := m.verifier().Run(m.ctx, "usage")
	if err != nil {
		m.t.Fatal(err)
	}
	if named := rep.Topics[0].Derived; !rep.OK() || len(named) == 0 || !strings.Contains(named[0], "which its rows do not") {
		m.t.Errorf("verify: ok %t, %v, derived %v", rep.OK(), rep.Problems, named)
	}
	m.exact("a row of the sums lost")
	m.derive()
	m.exec("TRUNCATE TABLE " + sums)
	m.exact("all sums lost")
	m.derive()
}

// eraseCustomer erases one from both topics.
func (m *metered) eraseCustomer() {
	m.t.Helper()
	m.erase("cust-s5", meterTimes, map[string]string{schemas.DerivedSums: "user_id = 'cust-s5' OR space = 's5'"}, func() { m.gone["s5"] = true })
}

// drop has retention drop the rows of both topics: not before they are summed.
func (m *metered) drop() {
	m.t.Helper()
	m.Rollups[0].Kill()
	for _, topic := range m.topics {
		m.exec("TRUNCATE TABLE " + m.table(topic, schemas.DerivedSums))
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
		if n, err := m.SQL.Number(m.ctx, "SELECT count() FROM %s", m.table(topic, "")); err != nil || n != 0 {
			m.t.Errorf("%s: %d rows, %v", topic, n, err)
		}
	}
}
