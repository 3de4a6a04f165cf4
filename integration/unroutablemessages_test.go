package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// What is published under a wildcard is stored by NATS like anything else. It is
// kept as a dead letter, and no lane is disturbed: read as a filter, its subject
// would select theirs.
func TestWildcardSubjectsAreUnroutable(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	e := running(t, topic)
	odd := []string{"events.app.2026-02.*", "events.*.2026-02.0", "events.app.*.0", "events.*.*.*", "events.app.2026-02.>"}
	p := e.producer("app")
	const n = 300
	for i := range n {
		if i%100 == 50 {
			for _, subject := range odd[:4] {
				if _, err := e.js().Publish(t.Context(), subject, []byte(`{"message":"odd"}`)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := p.Publish(t.Context(), producer.Event{UserID: fmt.Sprint(i), Message: "good"}); err != nil {
			t.Fatal(err)
		}
	}
	e.stored("app", n, 30*time.Second)
	eventually(t, 30*time.Second, func() error {
		letters, err := e.reader().Dead(t.Context(), "", 100)
		if err == nil && len(letters) != 12 {
			err = fmt.Errorf("%d dead letters, want 12", len(letters))
		}
		return err
	})
	e.resolved()
	e.verify(n + 12)
	// They are taken out of EVENTS, so that they are not read again.
	eventually(t, 30*time.Second, func() error {
		s, err := e.js().Stream(t.Context(), schemas.StreamEvents)
		if err != nil {
			return err
		}
		info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(schemas.SubjectsEvents))
		if err != nil {
			return err
		}
		for subject := range info.State.Subjects {
			if !schemas.Literal(subject) && subject != "events.app.*.0" { // that one is of lane 0
				return fmt.Errorf("%s is still in %s", subject, schemas.StreamEvents)
			}
		}
		return nil
	})
}

// Events of an undeclared topic are dead letters; declared later, what comes
// then is stored, and nothing is both.
func TestTopicDeclaredLate(t *testing.T) {
	t.Parallel()
	e := running(t, newTopic("app"))
	js := e.js()
	publish := func(n int) {
		for i := range n {
			if _, err := js.Publish(t.Context(), fmt.Sprintf("events.late.%s.%d", schemas.MonthOf(time.Now().UnixNano()), i%4), fmt.Appendf(nil, `{"message":"%d"}`, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	publish(40)
	eventually(t, 30*time.Second, func() error {
		letters, err := e.reader().Dead(t.Context(), "late", 100)
		if err == nil && len(letters) != 40 {
			err = fmt.Errorf("%d dead letters, want 40", len(letters))
		}
		return err
	})
	if _, _, err := e.reg.Apply(t.Context(), newTopic("late"), false); err != nil {
		t.Fatal(err)
	}
	publish(20)
	// Between the declaration and the moment every router knows of it, events may
	// still become dead letters; none may be lost or doubled.
	eventually(t, 30*time.Second, func() error {
		rep, err := e.proof("")
		switch {
		case err != nil:
			return err
		case !rep.OK() || rep.Accepted != 60 || rep.Pending != 0 || rep.Stored+rep.Dead != 60 || rep.Dead < 40:
			return fmt.Errorf("accepted %d, stored %d, dead %d, pending %d: %v", rep.Accepted, rep.Stored, rep.Dead, rep.Pending, rep.Problems)
		}
		return nil
	})
}

// A topic of which a shard's frames decompress to far more than one insert may
// hold is stored in several, each whole.
func TestHighlyCompressibleEvents(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.Lanes = 1
	e := start(t, topic)
	p := e.producer("app")
	line := make([]byte, 60<<10)
	for i := range line {
		line[i] = 'x'
	}
	const n = 2500 // 150 MB of text, more than one insert may have, in less than a megabyte of frames
	for range n {
		p.Log(producer.Event{UserID: "u", Message: string(line)})
	}
	e.flush(p)
	e.router()
	e.sink()
	e.stored("app", n, 60*time.Second)
	e.verify(n)
	if inserts := e.count("SELECT uniqExact(pos) FROM %s", e.table("app")); inserts < 2 {
		t.Errorf("%d inserts took 150 MB", inserts)
	}
	if torn := e.count("SELECT count() FROM (SELECT pos, uniqExact(_part) AS parts FROM %s GROUP BY pos HAVING parts > 1)", e.table("app")); torn > 0 {
		t.Errorf("%d inserts became several parts", torn)
	}
}
