package integration

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// crashPoints are where routers and sinks can be made to die.
var crashPoints = map[string][]string{
	"router":  {"router.before-batch", "router.after-batch", "router.after-rotate"},
	"sink":    {"sink.before-insert", "sink.after-insert"},
	"cleaner": {"cleaner.before-stubs", "cleaner.after-stubs", "cleaner.before-purges", "cleaner.after-purges"},
}

// The rotation of 120,000 events, while every second a router or a sink is
// killed without warning, and those that are not kill themselves at a crash
// point sooner or later. All are replaced at once; the totals stay the same.
func TestRotationUnderKills(t *testing.T) {
	t.Parallel()
	const producers, each, rows, rounds = 4, 30_000, schemas.TestRotateRows, 8
	e := start(t, oneLane("usage", rows))
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	fresh := func(role string) *process {
		points := crashPoints[role]
		return e.process(part{Role: role, CrashAt: points[rnd.IntN(len(points))], CrashHit: 1 + rnd.IntN(8)})
	}
	running := []*process{fresh("router"), fresh("router"), fresh("router"), fresh("sink"), fresh("sink")}

	published := make(chan struct{})
	go func() {
		defer close(published)
		parallel(t, producers, func(n int) {
			p := e.producer("usage")
			pace := time.NewTicker(rounds * time.Second / 100)
			defer pace.Stop()
			for i := range each {
				if i%(each/100) == 0 {
					<-pace.C
				}
				p.Log(producer.Event{Time: feb(i, each), UserID: fmt.Sprintf("u-%d", i%100), Message: fmt.Sprintf("%d-%d", n, i)})
			}
			e.flush(p)
		})
	}()

	kills, deaths := 0, 0
	everySecond := time.NewTicker(time.Second)
	defer everySecond.Stop()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for done := false; !done; {
		victim := -1
		select {
		case <-published:
			done = true
		case <-everySecond.C:
			victim = rnd.IntN(len(running))
			kills++
		case <-look.C:
		}
		for i, c := range running {
			select {
			case <-c.gone:
				c.killed()
				deaths++
			default:
				if i != victim {
					continue
				}
				c.kill()
			}
			running[i] = fresh(c.Role)
		}
	}
	t.Logf("%d kills, %d deaths at a crash point", kills, deaths)
	// From here on no process dies.
	for i, c := range running {
		c.kill()
		running[i] = e.process(part{Role: c.Role})
	}
	e.stored("usage", producers*each, time.Minute)
	if got := e.count("SELECT uniqExact(message) FROM %s", e.table("usage")); got != producers*each {
		t.Errorf("%d distinct messages, want %d", got, producers*each)
	}
	e.rotated("usage", rows, 3)
	e.whole("usage", producers*each)
	if rep := e.verify(producers * each); rep.Dead != 0 {
		t.Errorf("%d dead letters, want none", rep.Dead)
	}
}

// Each crash point, the first and the second or fifth time it is passed: the process dies
// there, and what the next one finds is whole.
func TestCrashPoints(t *testing.T) {
	t.Parallel()
	const rows = 60
	topic := newTopic("app")
	topic.Lanes, topic.Rotate = 8, schemas.Rotation{Rows: rows}
	e := start(t, topic)
	p := e.producer("app")
	n := 0
	publish := func() { // a frame for each lane
		for i := range 8 * 25 {
			p.Log(producer.Event{Time: feb(i, 8*25), UserID: fmt.Sprintf("u-%d", n%1000), Message: fmt.Sprint(n)})
			n++
		}
		e.flush(p)
	}
	dieAll := func(role string, done func() uint64) {
		t.Helper()
		for i, point := range crashPoints[role] {
			for _, hit := range []int{1, 2 + i%2*3} {
				c := e.process(part{Role: role, CrashAt: point, CrashHit: hit})
				eventually(t, time.Minute, func() error {
					select {
					case <-c.gone:
						return nil
					default:
					}
					if done() == uint64(n) {
						publish() // it lives on, and needs more to come to its point
					}
					return fmt.Errorf("%s is still alive: %s", c.part, c.said.text())
				})
				c.killed()
				e.forgetMembers(role)
			}
		}
		e.process(part{Role: role})
	}
	dieAll("router", func() uint64 { return e.routedSoFar("app") })
	if err := e.db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	dieAll("sink", func() uint64 { return e.count("SELECT count() FROM %s", e.table("app")) })
	t.Logf("%d events", n)
	e.stored("app", uint64(n), time.Minute)
	if got := e.count("SELECT uniqExact(message) FROM %s", e.table("app")); got != uint64(n) {
		t.Errorf("%d distinct messages, want %d", got, n)
	}
	for _, s := range e.closed("app", 30*time.Second) {
		if s.Reason != "" && s.Rows < rows {
			t.Errorf("%s was left with %d rows, want %d or more", s.Name(), s.Rows, rows)
		}
	}
	e.whole("app", uint64(n))
	e.verify(uint64(n))
}

// forgetMembers deletes the leases of a role, as if the dead had been dead for
// long, so that the next process need not wait for their share.
func (e *env) forgetMembers(role string) {
	e.t.Helper()
	kv, err := e.js().KeyValue(e.t.Context(), schemas.Bucket)
	if err != nil {
		e.t.Fatal(err)
	}
	keys, err := kv.ListKeysFiltered(e.t.Context(), schemas.LeaseKeys(role))
	if err != nil {
		e.t.Fatal(err)
	}
	for key := range keys.Keys() {
		if err := kv.Purge(e.t.Context(), key); err != nil {
			e.t.Fatal(err)
		}
	}
}
