package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// copyTopic is the topic that a staged one is replayed into.
const copyTopic = "copy"

// staged is a Cluster with a topic of a kind that goes through stages, while parts are killed in each.
type staged struct {
	*Cluster
	ctx    context.Context
	rnd    *rand.Rand
	reg    *registry.Registry
	db     *tables.DB
	read   *query.Reader
	topic  schemas.Topic
	kills  int          // of each stage
	turn   []Role       // the parts that are still to be killed before each was once more
	killed map[Role]int // of this stage
	topics []string     // those that have all events
	bad    []badLine    // what was sent and is not an event of the topic
	// answers asks a topic everything that is known of it, however much of it is derived; a wrong answer is errWrong.
	answers func(ctx context.Context, topic string) error
	// counted checks what holds of a topic of which all is derived.
	counted func(when, topic string)
}

// badLine is a line, or a frame, that is refused for a reason of its own.
type badLine struct{ rest, reason, says string }

// stage is a step of a staged topic's life.
type stage struct {
	name string
	do   func()
}

// stagedRoles are killed between any two steps of a stage.
var stagedRoles = []Role{RoleRouter, RoleSink, RoleRollups, RoleEngine}

// errWrong is a wrong answer, which no fault excuses.
var errWrong = errors.New("a wrong answer")

// stagedTopic builds a cluster with a topic and one to replay it into. kills parts are killed in each stage.
func stagedTopic(ctx context.Context, t *testing.T, topic schemas.Topic, kills int) *staged {
	t.Helper()
	_, rnd := Seed(t)
	s := &staged{Cluster: Build(t, Plan{Rollups: 1, Linger: 50 * time.Millisecond}), ctx: ctx, rnd: rnd, kills: kills, topics: []string{topic.Name}}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	s.reg, err = registry.Open(ctx, s.NC)
	check(err)
	s.db, err = tables.Open(s.dsn)
	check(err)
	t.Cleanup(func() { _ = s.db.Close() })
	s.read, err = query.New(s.NC, s.reg, s.db)
	check(err)
	for _, name := range []string{copyTopic, topic.Name} {
		topic.Name = name
		s.topic, err = topic.Declared()
		check(err)
		_, _, err = s.reg.Apply(ctx, s.topic, false)
		check(err)
	}
	return s
}

// run goes through stages. After each every answer is asked for, and what was refused.
func (s *staged) run(stages []stage) {
	s.t.Helper()
	for _, st := range stages {
		began := time.Now()
		s.killed = map[Role]int{}
		st.do()
		s.exact(st.name)
		s.refused(st.name)
		s.t.Logf("%-26s %6s, kill -9 of %v", st.name, time.Since(began).Round(100*time.Millisecond), s.killed)
		if s.t.Failed() {
			return
		}
	}
}

// exact holds the answers of each topic that has all events to what they must be.
func (s *staged) exact(when string) {
	s.t.Helper()
	for _, topic := range s.topics {
		if err := s.answers(s.ctx, topic); err != nil {
			s.t.Errorf("%s, topic %s: %v", when, topic, err)
		}
	}
}

// refused checks that what is not an event is kept once, each with its own reason.
func (s *staged) refused(when string) {
	s.t.Helper()
	dead, err := s.read.Dead(s.ctx, s.topic.Name, 100)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range s.bad {
		found := 0
		for _, d := range dead {
			if d.Reason == s.bad[i].reason && strings.Contains(d.Detail, s.bad[i].says) {
				found++
			}
		}
		if found != 1 {
			s.t.Errorf("%s: %d dead letters say %s, want 1", when, found, s.bad[i].says)
		}
	}
	if len(dead) != len(s.bad) {
		s.t.Errorf("%s: %d dead letters, want %d: %+v", when, len(dead), len(s.bad), dead)
	}
}

// json sends lines of JSON, each by the lane of its event; a line that is none goes with those before it.
func (s *staged) json(at time.Time, lines string) {
	s.t.Helper()
	byLane, lane, keys := map[int]string{}, s.rnd.IntN(s.topic.Lanes), rawjson.Keys{Topic: &s.topic}
	for line := range strings.Lines(lines) {
		if e, err := keys.ParseText(strings.TrimSuffix(line, "\n")); err == nil {
			ts := at.UnixNano()
			if !e.Time.IsZero() {
				ts = e.Time.UnixNano()
			}
			if s.topic.Check(&e, ts, ts) == nil {
				lane = schemas.LaneOf(&s.topic, &e, ts, "")
			}
		}
		byLane[lane] += line
	}
	js, err := jetstream.New(s.NC)
	for lane, lines := range byLane {
		if err == nil {
			_, err = js.Publish(s.ctx, schemas.EventsSubject(s.topic.Name, schemas.MonthOf(at.UnixNano()), lane), []byte(lines))
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// made is an event that could be made.
func made(e schemas.Event, err error) schemas.Event {
	if err != nil {
		panic(err) // of a test's own constants
	}
	return e
}

// publish has a producer of its own send events, in their order.
func (s *staged) publish(events ...schemas.Event) error {
	p, err := producer.Connect(s.ctx, s.natsURL, producer.Config{Topic: s.topic.Name, Policy: producer.Block})
	if err != nil {
		return err
	}
	for i := range events {
		if err := p.Submit(s.ctx, events[i], nil); err != nil {
			return errors.Join(err, p.Close(s.ctx))
		}
	}
	return p.Close(s.ctx)
}

// shuffled calls do with each of n numbers, in an order of the seed, and kills parts in between.
func (s *staged) shuffled(n int, do func(int)) {
	s.t.Helper()
	strikes := map[int]int{}
	for range s.kills {
		strikes[s.rnd.IntN(n)]++
	}
	for at, i := range s.rnd.Perm(n) {
		for range strikes[at] {
			s.kill()
		}
		do(i)
	}
}

// kill kills a part at a moment of the seed, each part in its turn. Rollups may be told to die at a point of theirs
// instead. What died before is started again first.
func (s *staged) kill() {
	s.t.Helper()
	s.heal(false)
	if len(s.turn) == 0 {
		s.turn = slices.Clone(stagedRoles)
		s.rnd.Shuffle(len(s.turn), func(i, j int) { s.turn[i], s.turn[j] = s.turn[j], s.turn[i] })
	}
	role := s.turn[0]
	s.turn = s.turn[1:]
	p, _ := s.pick(role, s.rnd)
	p.Kill()
	s.killed[role]++
	if role == RoleRollups {
		points := rollupPoints(&s.topic)
		p.Spec.CrashAt, p.Spec.CrashHit = points[s.rnd.IntN(len(points))], 1+s.rnd.IntN(2)
	}
	s.start(p)
}

// heal starts what is dead; ready waits until all of it works, and nothing will die any more.
func (s *staged) heal(ready bool) {
	s.t.Helper()
	for _, p := range s.Parts() {
		if ready && p.Spec.CrashAt != "" {
			p.Kill()
			p.Spec.CrashAt = ""
		}
		if !p.Alive() {
			s.start(p)
		}
		if ready {
			s.ready(p)
		}
	}
}

// during runs a stage's work while parts are killed, again and again, and once more when all of them work.
func (s *staged) during(work func(context.Context) error) {
	s.t.Helper()
	for range s.kills {
		ctx, stop := context.WithCancel(s.ctx)
		done := make(chan error, 1)
		go func() { done <- work(ctx) }()
		err, over := wait(done, Between(s.rnd, 0, 400*time.Millisecond))
		s.kill()
		if !over {
			err, over = wait(done, Between(s.rnd, 0, time.Second))
		}
		if stop(); !over { // the process that did it dies too
			err = <-done
		}
		if errors.Is(err, errWrong) {
			s.t.Error(err)
		}
	}
	s.heal(true)
	if err := until(s.ctx, recoveryLimit, 100*time.Millisecond, work); err != nil {
		s.t.Fatal(err)
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

// verifier compares all there is, and takes nothing that was proven before.
func (s *staged) verifier() *verify.Verifier {
	s.t.Helper()
	v, err := verify.New(s.NC, s.reg, s.db)
	if err != nil {
		s.t.Fatal(err)
	}
	return v.Full()
}

// verified checks that verify proves a topic of which all is stored and derived, and counts so many repeats.
func (s *staged) verified(when, topic string, repeats uint64) {
	s.t.Helper()
	rep, err := s.verifier().Run(s.ctx, topic)
	if err != nil {
		s.t.Fatal(err)
	}
	if t := rep.Topics[0]; !rep.OK() || t.Pending > 0 || t.Repeats != repeats || len(t.Derived) > 0 {
		s.t.Errorf("%s: verify of %s: ok %t, %v, %d repeats (want %d), derived %v", when, topic, rep.OK(), rep.Problems, t.Repeats, repeats, t.Derived)
	}
}

// wrongly makes an error of an answer that is not the one that it must be.
func wrongly(format string, a ...any) error {
	return fmt.Errorf("%w: %s", errWrong, fmt.Sprintf(format, a...))
}
