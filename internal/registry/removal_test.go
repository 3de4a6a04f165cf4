package registry

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
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

// TestFirstEntriesOfARemovedTopic holds that what was prepared before a topic was removed is not entered afterwards, also where its key is new, and
// that it is where the topic's descriptor only changes meanwhile.
func TestFirstEntriesOfARemovedTopic(t *testing.T) {
	t.Parallel()
	r, ctx := open(t), timeout(t)
	app, ref := schemas.NewTopic("app"), schemas.ShardRef{Topic: "app", Month: november, ID: schemas.NewShard(0)}
	writes := map[string]func() error{
		"an erasure": func() error {
			_, err := r.Enter(ctx, ledger.Erasure{ID: "e3", Topic: "app", State: ledger.Waiting})
			return err
		},
		"what erasures took": func() error {
			return r.Begin(ctx, &ledger.ErasureRecord{Topic: "app", Month: november, Shard: ref.ID}, ledger.Pending{Erasure: "e1"})
		},
		"an amended record of that": func() error {
			_, err := r.AmendErasureRecord(ctx, schemas.ShardRef{Topic: "app", Month: november, ID: schemas.NewShard(1)}, func(*ledger.ErasureRecord) bool { return true })
			return err
		},
		"a timer group": func() error {
			_, _, err := r.AmendTimerGroup(ctx, "app", "g", func(*timer.Group) error { return nil })
			return err
		},
		"a seal": func() error { _, err := r.AddSeal(ctx, schemas.Seal{Topic: "app"}, 0); return err },
		"a job": func() error {
			return r.SaveJob(ctx, &Job{ID: "j", Verb: "replay-into", Topics: []string{"other", "app"}, State: []byte("{}")})
		},
		"a lease of a drop": func() error { return r.DerivedDropper("app").renew(ctx, "token") },
		"dead letters":      func() error { _, err := r.OpenLetters(ctx, Letters{Topic: "app"}, nil); return err },
	}
	for what, write := range writes {
		t.Run(what, func(t *testing.T) {
			if err := write(); err != nil { // of a topic that the registry never had
				t.Errorf("%s of a topic without a descriptor: %v", what, err)
			}
		})
	}
	if _, _, err := r.Apply(ctx, app, false); err != nil {
		t.Fatal(err)
	}
	before, err := r.withTopics(ctx, []string{"app", "app"}, nil)
	if err != nil || len(before) != 1 {
		t.Fatalf("%v, %v", before, err)
	}
	if _, err := r.Enter(ctx, ledger.Erasure{ID: "e1", Topic: "app", State: ledger.Waiting}); err != nil { // it writes the descriptor again
		t.Fatal(err)
	}
	if err := r.commit(ctx, append([]*change{{key: schemas.LedgerKey("app", "e2"), v: &ledger.Erasure{}}}, before...)...); !errors.Is(err, ErrConflict) {
		t.Errorf("beside an earlier reading of the descriptor: %v", err)
	}
	if _, err := r.BeginRemoval(ctx, "app", noon); err != nil {
		t.Fatal(err)
	}
	rev, err := r.ForgetTopic(ctx, "app")
	if err != nil {
		t.Fatal(err)
	}
	upTo := map[string]uint64{schemas.KVStream: rev + 1000, schemas.CopiesStream: rev + 1000}
	if _, err := r.ForgetKeys(ctx, "app", upTo); err != nil {
		t.Fatal(err)
	}
	for what, write := range writes {
		t.Run(what, func(t *testing.T) {
			if err := write(); !errors.Is(err, schemas.ErrUnknownTopic) {
				t.Errorf("%s after the removal: %v", what, err)
			}
		})
	}
	if _, err := r.AmendRemoval(ctx, "app", func(d *Removal) bool { d.Ended = &noon; return true }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Apply(ctx, app, false); err != nil { // a log
		t.Fatal(err)
	}
	if err := writes["a timer group"](); !errors.Is(err, schemas.ErrRequest) {
		t.Errorf("a timer group of what is a log by now: %v", err)
	}
	if left, err := r.KeysLeft(ctx, "app"); err != nil || left > 0 {
		t.Errorf("%d entries are left, %v", left, err)
	}
}
