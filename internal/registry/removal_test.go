package registry

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// TestLateIsCountedOnce holds that a message of a removed topic counts once, however often it is read, and that producers are bounded.
func TestLateIsCountedOnce(t *testing.T) {
	t.Parallel()
	var l Late
	at := time.Unix(1_000_000, 0)
	for range 3 { // a router that is killed before it took them out reads them again
		for seq := uint64(1); seq <= 100; seq++ {
			l.Count(fmt.Sprint(seq%2), seq, seq%3, fmt.Sprint("p-", seq), at.Add(time.Duration(seq)))
		}
	}
	want := uint64(0)
	for seq := uint64(1); seq <= 100; seq++ {
		want += max(seq%3, 1)
	}
	if l.Messages != 100 || l.Events != want || len(l.Producers) != MaxLateProducers || !l.Last.Equal(at.Add(100)) {
		t.Errorf("%+v, expected 100 messages with %d events", l, want)
	}
}

// TestGuardOfARemovedTopic holds that a program which writes to a topic for long is refused once that was removed, also where the name is another
// topic's since, and neither before nor where the registry lost the topic.
func TestGuardOfARemovedTopic(t *testing.T) {
	t.Parallel()
	r, ctx := open(t), timeout(t)
	declare := func(name string) *Guard {
		if _, _, err := r.Apply(ctx, schemas.NewTopic(name), false); err != nil {
			t.Fatal(err)
		}
		topic, err := r.Topic(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		return NewGuard(r, topic, time.Now())
	}
	check := func(what string, g *Guard, refused bool) {
		t.Helper()
		g.read = time.Time{}
		if err := g.Check(ctx); errors.Is(err, schemas.ErrUnknownTopic) != refused || g.Gone() != refused || !refused && err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	app, late, lost := declare("app"), declare("app"), declare("lost")
	check("a topic that is there", app, false)
	if err := r.kv.Purge(ctx, schemas.TopicKey("lost")); err != nil {
		t.Fatal(err)
	}
	check("one that the registry lost", lost, false)
	if _, err := r.BeginRemoval(ctx, "app", noon); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ForgetTopic(ctx, "app"); err != nil {
		t.Fatal(err)
	}
	if err := late.Check(ctx); err != nil {
		t.Errorf("a moment after it was read: %v", err)
	}
	check("one that is being removed", app, true)
	if _, err := r.AmendRemoval(ctx, "app", func(d *Removal) bool { d.Ended = &noon; return true }); err != nil {
		t.Fatal(err)
	}
	again := declare("app")
	check("one whose name is another's", late, true)
	check("that one", again, false)
}

// TestErasureOfARemovedTopic holds that an erasure which was prepared before its topic was removed is not entered afterwards, and that one of a topic
// whose descriptor changes meanwhile is.
func TestErasureOfARemovedTopic(t *testing.T) {
	t.Parallel()
	r, ctx := open(t), timeout(t)
	if _, _, err := r.Apply(ctx, schemas.NewTopic("app"), false); err != nil {
		t.Fatal(err)
	}
	before, err := r.withTopic(ctx, "app")
	if err != nil || len(before) != 1 {
		t.Fatalf("%v, %v", before, err)
	}
	e, err := r.Enter(ctx, ledger.Erasure{ID: "e1", Topic: "app", State: ledger.Waiting}) // it writes the descriptor again
	if err != nil {
		t.Fatal(err)
	}
	if err := r.commit(ctx, append([]*change{{key: schemas.LedgerKey("app", "e2"), v: &e}}, before...)...); !errors.Is(err, ErrConflict) {
		t.Errorf("beside an earlier reading of the descriptor: %v", err)
	}
	if _, err := r.BeginRemoval(ctx, "app", noon); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ForgetTopic(ctx, "app"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Enter(ctx, ledger.Erasure{ID: "e3", Topic: "app", State: ledger.Waiting}); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Errorf("after the descriptor went: %v", err)
	}
	if _, err := r.Erasure(ctx, "app", "e2"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the ledger: %v", err)
	}
}
