package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/gateway/inputtest"
	"github.com/almanac-events/almanac/maintenance/verify"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/tables"
)

// metered is a House with two topics of kind meter.
type metered struct {
	*House
	ctx   context.Context
	rnd   *rand.Rand
	reg   *registry.Registry
	db    *tables.DB
	read  *query.Reader
	topic schemas.Topic
	focus []inputtest.FocusLine // absent without the file
	// writers is how many diffs twenty writers send; kills is how many kills are made in each stage.
	writers, kills int
	turn           []Role          // the parts that are still to be killed before each was once more
	killed         map[Role]int    // of this stage
	topics         []string        // those that have all diffs
	dropped        bool            // retention dropped the rows
	gone           map[string]bool // spaces that were erased
}

// meterRoles are killed between any two steps of TestMetersUnderKills.
var meterRoles = []Role{RoleRouter, RoleSink, RoleRollups, RoleEngine}

// TestMetersUnderKills crosses the acceptance of kind meter with what may happen to it. The diffs of known months, of
// twenty writers and of a real bill, each sent two or three times and shuffled, as events and as JSON, with bad ones among
// them, are billed in each stage while router, sink, rollups and the engine are killed in turn. Every number is exact: once
// all is stored, while it is derived, when sums were lost, a partition too, after rebuilds, in a second topic into which it
// is replayed, after a customer was erased, and when retention dropped the rows. ALMANAC_METER_KILLS kills in each
// stage: four kill each part once. ALMANAC_METER_DIFFS are the diffs of each writer.
func TestMetersUnderKills(t *testing.T) {
	_, rnd := Seed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	m := &metered{House: Build(t, Plan{Rollups: 1, Linger: 50 * time.Millisecond}), ctx: ctx, rnd: rnd, kills: number("ALMANAC_METER_KILLS", 1),
		writers: 20 * number("ALMANAC_METER_DIFFS", 10), focus: inputtest.FocusBill(t), topics: []string{"usage"}, gone: map[string]bool{}}
	if m.focus == nil {
		t.Log("no folder shared/data: without the bill of FOCUS")
	}
	m.open()
	for _, s := range []struct {
		name string
		do   func()
	}{
		{"sent", m.send},
		{"derived", m.derive},
		{"sums lost", m.loseSums},
		{"partition lost, repaired", m.repair},
		{"rebuilt", func() { m.rebuild("usage") }},
		{"replayed", m.replay},
		{"replayed and rebuilt", func() { m.rebuild("copy") }},
		{"erased", m.erase},
		{"erased and rebuilt", func() { m.rebuild("usage") }},
		{"dropped by retention", m.drop},
		{"dropped and rebuilt", func() { m.rebuild("usage") }},
	} {
		began := time.Now()
		m.killed = map[Role]int{}
		s.do()
		m.exact(s.name)
		m.refused(s.name)
		t.Logf("%-26s %6s, kill -9 of %v", s.name, time.Since(began).Round(100*time.Millisecond), m.killed)
		if t.Failed() {
			return
		}
	}
}

func (m *metered) open() {
	m.t.Helper()
	var err error
	check := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	m.reg, err = registry.Open(m.ctx, m.NC)
	check(err)
	m.db, err = tables.Open(m.dsn)
	check(err)
	m.t.Cleanup(func() { _ = m.db.Close() })
	m.read, err = query.New(m.NC, m.reg, m.db)
	check(err)
	for _, name := range []string{"usage", "copy"} {
		m.topic, err = schemas.Topic{Name: name, Kind: kinds.Meter, Lanes: 2, Rotate: schemas.Rotation{Rows: 1000}, Fields: []schemas.Field{{Name: "amount", Type: schemas.TypeDecimal}}}.Declared()
		check(err)
		_, _, err = m.reg.Apply(m.ctx, m.topic, false)
		check(err)
	}
	m.topic.Name = "usage"
}

// verifier compares all there is, and takes nothing that was proven before.
func (m *metered) verifier() *verify.Verifier {
	m.t.Helper()
	v, err := verify.New(m.NC, m.reg, m.db)
	if err != nil {
		m.t.Fatal(err)
	}
	return v.Full()
}

// strike kills a part at a moment of the seed, each part in its turn. Rollups may be told to die at a point of theirs
// instead. What died before is started again first.
func (m *metered) strike() {
	m.t.Helper()
	m.heal(false)
	if len(m.turn) == 0 {
		m.turn = slices.Clone(meterRoles)
		m.rnd.Shuffle(len(m.turn), func(i, j int) { m.turn[i], m.turn[j] = m.turn[j], m.turn[i] })
	}
	role := m.turn[0]
	m.turn = m.turn[1:]
	p, _ := m.pick(role, m.rnd)
	p.Kill()
	m.killed[role]++
	if role == RoleRollups {
		p.Spec.CrashAt, p.Spec.CrashHit = rollupPoints[m.rnd.IntN(len(rollupPoints))], 1+m.rnd.IntN(2)
	}
	m.start(p)
}

// heal starts what is dead; ready waits until all of it works, and nothing will die any more.
func (m *metered) heal(ready bool) {
	m.t.Helper()
	for _, p := range m.Parts() {
		if ready && p.Spec.CrashAt != "" {
			p.Kill()
			p.Spec.CrashAt = ""
		}
		if !p.Alive() {
			m.start(p)
		}
		if ready {
			m.ready(p)
		}
	}
}

// errWrong is a bill with a wrong number, which no fault excuses.
var errWrong = errors.New("a wrong bill")

// during runs a stage's work while parts are killed, again and again, and once more when all of them work.
func (m *metered) during(work func(context.Context) error) {
	m.t.Helper()
	for range m.kills {
		ctx, stop := context.WithCancel(m.ctx)
		done := make(chan error, 1)
		go func() { done <- work(ctx) }()
		err, over := wait(done, Between(m.rnd, 0, 400*time.Millisecond))
		m.strike()
		if !over {
			err, over = wait(done, Between(m.rnd, 0, time.Second))
		}
		if stop(); !over { // the process that did it dies too
			err = <-done
		}
		if errors.Is(err, errWrong) {
			m.t.Error(err)
		}
	}
	m.heal(true)
	if err := until(m.ctx, recoveryLimit, 100*time.Millisecond, work); err != nil {
		m.t.Fatal(err)
	}
}

// wait waits for an answer, for so long.
func wait(done <-chan error, within time.Duration) (err error, over bool) {
	select {
	case err := <-done:
		return err, true
	case <-time.After(within):
		return nil, false
	}
}
