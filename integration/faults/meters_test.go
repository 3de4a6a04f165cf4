package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/maintenance/erasure"
	"github.com/almanac-events/almanac/maintenance/rebuild"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/replay"
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
	// killed counts kills by what was killed; kills is how many are made in each stage.
	killed map[Role]int
	kills  int
	gone   map[string]bool // spaces that were erased
}

// meterRoles are killed between any two steps of TestMetersUnderKills.
var meterRoles = []Role{RoleRouter, RoleSink, RoleRollups, RoleEngine}

// TestMetersUnderKills bills the diffs of known months, each sent three times and shuffled, as events and as JSON, while
// router, sink, rollups and the engine are killed between any two steps. Every number is exact: once all is stored, while
// it is derived, when sums lost rows, after a rebuild, in a second topic into which it is replayed, after a customer was
// erased, and when retention dropped the rows. ALMANAC_METER_KILLS kills in each stage.
func TestMetersUnderKills(t *testing.T) {
	_, rnd := Seed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	m := &metered{House: Build(t, Plan{Rollups: 1, Linger: 50 * time.Millisecond}), ctx: ctx, rnd: rnd, killed: map[Role]int{}, kills: number("ALMANAC_METER_KILLS", 2), gone: map[string]bool{}}
	m.open()
	stages := []struct {
		name string
		do   func()
	}{
		{"sent", m.send},
		{"derived", m.derive},
		{"sums lost", m.loseSums},
		{"rebuilt", m.rebuild},
		{"replayed", m.replay},
		{"erased", m.erase},
		{"dropped by retention", m.drop},
	}
	for _, s := range stages {
		began := time.Now()
		s.do()
		m.exact(s.name, "usage")
		t.Logf("%-22s %s", s.name, time.Since(began).Round(100*time.Millisecond))
		if t.Failed() {
			return
		}
	}
	t.Logf("kill -9: %v", m.killed)
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
		m.topic, err = schemas.Topic{Name: name, Kind: kinds.Meter, Lanes: 2}.Declared()
		check(err)
		_, _, err = m.reg.Apply(m.ctx, m.topic, false)
		check(err)
	}
	m.topic.Name = "usage"
}

// strike kills one part at a moment of the seed. Rollups may be told to die at a point of theirs instead. What died before
// is started again first.
func (m *metered) strike() {
	m.t.Helper()
	m.heal(false)
	role := meterRoles[m.rnd.IntN(len(meterRoles))]
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

// send sends each diff three times, in the order of the seed, the later copy of s3 before its first, while parts are killed.
func (m *metered) send() {
	m.t.Helper()
	all := diffs(m.t.(*testing.T))
	order := append(append(m.rnd.Perm(len(all)), m.rnd.Perm(len(all))...), m.rnd.Perm(len(all))...)
	p, err := producer.Connect(m.ctx, m.natsURL, producer.Config{Topic: "usage", Policy: producer.Block})
	if err != nil {
		m.t.Fatal(err)
	}
	js, err := jetstream.New(m.NC)
	if err != nil {
		m.t.Fatal(err)
	}
	strikes := map[int]bool{}
	for range m.kills {
		strikes[m.rnd.IntN(len(order))] = true
	}
	for n, i := range order {
		if strikes[n] {
			m.strike()
		}
		d := all[i]
		if m.rnd.IntN(2) == 0 {
			err = p.Publish(m.ctx, d.Event())
		} else { // under any lane
			_, err = js.Publish(m.ctx, schemas.EventsSubject("usage", schemas.MonthOf(d.Time.UnixNano()), m.rnd.IntN(2)),
				fmt.Appendf(nil, `{"ts":%q,"type":%q,"provider":%q,"space":%q,"cause":%q,"delta":%d,"user_id":%q}`, d.Time.Format(time.RFC3339Nano), d.Meter, d.Provider, d.Space, d.Cause, d.Delta, d.Customer))
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
	if err := p.Close(m.ctx); err != nil {
		m.t.Fatal(err)
	}
	m.heal(true)
	m.stored("usage")
}

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
		if err := m.bills(ctx, "usage"); err != nil {
			return err
		}
		return m.allDerived(ctx, "usage")
	})
}

// loseSums takes rows out of the sums behind everybody's back: bills are the same, and the sums heal.
func (m *metered) loseSums() {
	m.t.Helper()
	sums := schemas.QuotedTable(m.db.Database, "usage.sums")
	if err := m.db.Conn().Exec(m.ctx, "ALTER TABLE "+sums+" DELETE WHERE space = 's1' SETTINGS mutations_sync = 2"); err != nil {
		m.t.Fatal(err)
	}
	m.exact("a row of the sums lost", "usage")
	m.derive()
	if err := m.db.Conn().Exec(m.ctx, "TRUNCATE TABLE "+sums); err != nil {
		m.t.Fatal(err)
	}
	m.exact("all sums lost", "usage")
	m.derive()
}

func (m *metered) rebuild() {
	m.t.Helper()
	m.during(func(ctx context.Context) error {
		_, err := rebuild.Run(ctx, rebuild.Config{NATS: m.NC, Registry: m.reg, DB: m.db}, "usage", true)
		return err
	})
	m.exact("rebuilt, not derived", "usage")
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
	m.exact("replayed", "copy")
	m.during(func(ctx context.Context) error { return m.allDerived(ctx, "copy") })
	m.exact("replayed and derived", "copy")
}

func (m *metered) erase() {
	m.t.Helper()
	x, err := erasure.New(m.ctx, erasure.Config{Registry: m.reg, Reader: m.read, DB: m.db})
	if err != nil {
		m.t.Fatal(err)
	}
	e, err := x.Start(m.ctx, erasure.Request{Topic: "usage", Users: []string{"cust-s5"}})
	if err != nil {
		m.t.Fatal(err)
	}
	m.during(func(ctx context.Context) error {
		_, err := x.Run(ctx, "usage", e.ID)
		return err
	})
	m.gone["s5"] = true
	p, err := x.Show(m.ctx, "usage", e.ID)
	if err != nil || !p.Certified || p.Erasure.Rows != 3 {
		m.t.Errorf("%+v, %v", p, err)
	}
	m.exact("erased", "usage")
	m.derive()
	for _, q := range []string{"SELECT count() FROM `usage` WHERE user_id = 'cust-s5' OR space = 's5'", "SELECT count() FROM `usage.sums` WHERE user_id = 'cust-s5' OR space = 's5'"} {
		if n, err := m.SQL.Number(m.ctx, "%s", q); err != nil || n != 0 {
			m.t.Errorf("%s: %d, %v", q, n, err)
		}
	}
}

// drop has retention drop the rows of both months: not before they are summed.
func (m *metered) drop() {
	m.t.Helper()
	m.Rollups[0].Kill()
	if err := m.db.Conn().Exec(m.ctx, "TRUNCATE TABLE "+schemas.QuotedTable(m.db.Database, "usage.sums")); err != nil {
		m.t.Fatal(err)
	}
	keep := m.topic
	keep.KeepDays = 30
	if _, _, err := m.reg.Apply(m.ctx, keep, false); err != nil {
		m.t.Fatal(err)
	}
	for _, s := range m.Sinks { // a shard is left alone on its first day
		s.Kill()
		s.Spec.Ahead = 25 * time.Hour
		m.start(s)
		m.ready(s)
	}
	shards := func(ctx context.Context, want registry.Status) error {
		entries, err := m.reg.Shards(ctx, "usage", 0)
		for i := range entries {
			if err == nil && entries[i].Status != want {
				err = fmt.Errorf("%s is %s", entries[i].Name(), entries[i].Status)
			}
		}
		return err
	}
	if err := until(m.ctx, recoveryLimit, 100*time.Millisecond, func(ctx context.Context) error { return shards(ctx, registry.Closed) }); err != nil {
		m.t.Fatal(err)
	}
	m.exact("closed, and not summed", "usage")
	m.topic = keep
	m.during(func(ctx context.Context) error { return shards(ctx, registry.Dropped) })
	if n, err := m.SQL.Number(m.ctx, "SELECT count() FROM `usage`"); err != nil || n != 0 {
		m.t.Errorf("%d rows, %v", n, err)
	}
}
