package integration

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
)

// keptDocuments are documents in two months: a- to c- were last changed 40 days ago, and their shards
// are past 30 days; d- were updated since, e- removed then, f- are new.
type keptDocuments struct {
	e     *env
	topic schemas.Topic
	c     *documents.Collection
	clock atomic.Int64
	now   time.Time
}

const keptEach = 60

// time is the janitor's.
func (k *keptDocuments) time() time.Time { return time.Unix(0, k.clock.Load()) }

// keepDocuments writes them, waits until they are stored, and sets the janitor's clock past a shard's first
// day. own: a janitor runs beside the sink.
func keepDocuments(t *testing.T, hotFor time.Duration, own bool) *keptDocuments {
	t.Helper()
	topic := docsTopic()
	topic.Lanes, topic.Rotate = 2, schemas.Rotation{Rows: 40}
	topic.Documents.HotFor, topic.Documents.UserField = hotFor, "owner"
	k := &keptDocuments{e: start(t, topic), topic: topic, now: time.Now()}
	k.clock.Store(k.now.UnixNano())
	k.e.router()
	if own {
		k.e.sink(func(c *sinkConfig) { c.Retention.Now = k.time })
	} else {
		s, err := sinks.New(t.Context(), k.e.connect(), sinks.Config{Registry: k.e.reg, DB: k.e.sinkDB, Linger: 50 * time.Millisecond, Housekeeping: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		k.e.background(s.Run)
	}
	past := k.now.AddDate(0, 0, -40)
	old := k.e.documents("customers", func(c *documents.Config) { c.Now = func() time.Time { return past } })
	k.c = k.e.documents("customers")
	body := func(id string) []byte { return fmt.Appendf(nil, `{"owner":"u-%s"}`, id) }
	rows := 0
	put := func(c *documents.Collection, prefix string, change func(id string) error) {
		for i := range keptEach {
			id := fmt.Sprint(prefix, i)
			if change == nil {
				_, err := c.Create(t.Context(), documents.Draft{ID: id, Path: "se", Body: body(id)})
				if err != nil {
					t.Fatal(err)
				}
			} else if err := change(id); err != nil {
				t.Fatal(err)
			}
			rows++
		}
	}
	update := func(c *documents.Collection) func(string) error {
		return func(id string) error {
			_, err := c.Update(t.Context(), id, documents.Always, body(id))
			return err
		}
	}
	for _, prefix := range []string{"a-", "b-", "d-", "e-"} {
		put(old, prefix, nil)
	}
	put(old, "b-", update(old))
	put(old, "e-", func(id string) error { return old.Remove(t.Context(), id, documents.Always) })
	put(k.c, "d-", update(k.c))
	put(k.c, "f-", nil)
	k.e.stored("customers", uint64(rows), time.Minute)
	k.clock.Store(k.now.Add(25 * time.Hour).UnixNano()) // a shard is left alone on its first day
	return k
}

// there checks which documents are there, by every read.
func (k *keptDocuments) there(when string, prefixes ...string) {
	t := k.e.t
	t.Helper()
	want := map[string]bool{}
	for _, p := range prefixes {
		for i := range keptEach {
			want[fmt.Sprint(p, i)] = true
		}
	}
	listed, _ := list(t, k.c, documents.Selection{Path: "se"})
	if len(listed) != len(want) {
		t.Errorf("%s: %d documents are listed, expected %d", when, len(listed), len(want))
	}
	for _, d := range listed {
		if !want[d.ID] {
			t.Errorf("%s: %s is listed", when, d.ID)
		}
	}
	for _, p := range []string{"a-", "b-", "d-", "e-", "f-"} {
		for i := range keptEach {
			id := fmt.Sprint(p, i)
			d, err := again(k.c.Load)(t.Context(), id)
			if want[id] != (err == nil) || err != nil && !errors.Is(err, documents.ErrNotFound) {
				t.Fatalf("%s: %s: %+v, %v", when, id, d, err)
			}
		}
	}
}

// past says whether all in a shard is older than 30 days.
func (k *keptDocuments) past(s *registry.Shard) bool {
	return s.MaxTs < k.now.AddDate(0, 0, -30).UnixNano()
}

// reached waits until shards are as they should be.
func (k *keptDocuments) reached(is func(*registry.Shard) bool) {
	k.e.t.Helper()
	eventually(k.e.t, time.Minute, func() error {
		for _, s := range k.e.shards("customers") {
			if !is(&s) {
				return fmt.Errorf("%s: %s", s.Name(), describe(k.e.shards("customers")))
			}
		}
		return nil
	})
}

// dropped waits until what is past is dropped, and nothing else.
func (k *keptDocuments) dropped() {
	k.e.t.Helper()
	k.reached(func(s *registry.Shard) bool { return (s.Status == registry.Dropped) == k.past(s) })
}

// closing has what is past closed, and returns a janitor that does nothing by itself.
func (k *keptDocuments) closing() *retention.Janitor {
	k.e.t.Helper()
	k.topic.KeepDays = 30
	k.e.apply(k.topic)
	nc := k.e.connect()
	j, err := retention.New(k.e.t.Context(), nc, retention.Config{Registry: k.e.registry(nc), DB: k.e.sinkDB, Now: k.time})
	if err != nil {
		k.e.t.Fatal(err)
	}
	for _, s := range k.e.shards("customers") {
		if !k.past(&s) {
			continue
		}
		if err := k.e.reg.Retire(k.e.t.Context(), s); err != nil {
			k.e.t.Fatal(err)
		}
	}
	k.reached(func(s *registry.Shard) bool { return s.Status == registry.Closed || !k.past(s) })
	return j
}

// rounds has a janitor do what is due. One shard of each lane goes in each round.
func (k *keptDocuments) rounds(j *retention.Janitor) {
	k.e.t.Helper()
	eventually(k.e.t, time.Minute, func() error {
		err := j.Round(k.e.t.Context())
		for _, s := range k.e.shards("customers") {
			if (s.Status == registry.Dropped) != k.past(&s) {
				return fmt.Errorf("%s: %w", describe(k.e.shards("customers")), err)
			}
		}
		return err
	})
	k.dropped()
}

// Documents that did not change for longer than they are kept are gone with their shards, whether DOCS has
// them whole or as stubs. Their ids are free again; the others stay, and all of it is proven.
func TestDocumentRetention(t *testing.T) {
	t.Parallel()
	for name, hotFor := range map[string]time.Duration{"stubs": -1, "hot": 1000 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := keepDocuments(t, hotFor, true)
			k.there("before", "a-", "b-", "d-", "f-")
			k.topic.KeepDays = 30
			k.e.apply(k.topic)
			k.dropped()
			k.there("after", "d-", "f-")
			k.e.verified("customers")
			if n := k.e.count("SELECT count() FROM %s", k.e.table("customers")); n != 2*keptEach {
				t.Errorf("%d rows are left, expected %d", n, 2*keptEach)
			}
			for _, m := range k.e.messages(schemas.StreamDocs, schemas.DocTopicFilter("customers")) {
				if id := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]; !strings.HasPrefix(id, "d-") && !strings.HasPrefix(id, "f-") {
					t.Errorf("DOCS has %s", m.Subject)
				}
			}
			if h, err := again(k.c.History)(t.Context(), "d-1"); err != nil || len(h) != 1 || h[0].Version != 2 {
				t.Errorf("the history of d-1 is %+v, %v", h, err)
			}
			d, err := k.c.Create(t.Context(), documents.Draft{ID: "a-1", Path: "se", Body: []byte(`{}`)})
			if err != nil || d.Version != 1 {
				t.Errorf("an id that is free again: %+v, %v", d, err)
			}
			if _, err := k.c.Update(t.Context(), "b-1", documents.Always, []byte(`{}`)); !errors.Is(err, documents.ErrNotFound) {
				t.Errorf("an update of what is gone: %v", err)
			}
			k.e.verified("customers")
		})
	}
}

// What names a person is cleared in documents that did not change for a while, and the documents stay.
func TestDocumentAnonymise(t *testing.T) {
	t.Parallel()
	k := keepDocuments(t, -1, true)
	k.topic.Anonymise = schemas.Anonymise{AfterDays: 30, Fields: []string{"body", "user_id", "by"}}
	k.e.apply(k.topic)
	k.reached(func(s *registry.Shard) bool { return s.AnonymisedAt.IsZero() != k.past(s) })
	k.there("after", "a-", "b-", "d-", "f-")
	k.e.verified("customers")
	for id, want := range map[string]string{"a-1": "null", "b-1": "null", "d-1": `{"owner":"u-d-1"}`, "f-1": `{"owner":"u-f-1"}`} {
		d, err := again(k.c.Load)(t.Context(), id)
		if err != nil || string(d.Body) != want || (d.By == "") != (want == "null") {
			t.Errorf("%s: %+v, %v", id, d, err)
		}
	}
	if n := k.e.count("SELECT countIf(user_id != '' OR body != '' OR `by` != '') FROM %s SETTINGS apply_patch_parts = 0", k.e.table("customers")); n != 2*keptEach {
		t.Errorf("%d rows name a person, expected %d", n, 2*keptEach)
	}
	if d, err := k.c.Update(t.Context(), "a-1", documents.IfVersion(1), []byte(`{"n":1}`)); err != nil || d.Version != 2 || d.Path != "se" {
		t.Errorf("an update of what was cleared: %+v, %v", d, err)
	}
	k.e.verified("customers")
}

// However often the janitor dies on the way, what is left is proven, a repair finds nothing to bring back,
// and the next janitor goes on.
func TestDocumentRetentionDies(t *testing.T) {
	t.Parallel()
	k := keepDocuments(t, 1000*time.Hour, false)
	j := k.closing()
	for _, point := range []string{
		"janitor.before-mark", "janitor.after-mark", "cleaner.before-purges", "cleaner.after-purges", "janitor.after-expiry",
		"janitor.before-mark-frames", "janitor.after-mark-frames", "janitor.before-drop", "janitor.after-drop",
	} {
		k.e.janitorKilled(point, k.time)
		k.e.verified("customers")
		plan, err := again(k.e.repairer().Plan)(t.Context(), "customers")
		if err != nil || len(plan.Actions) > 0 {
			t.Errorf("after %s: a repair would do %+v, %v", point, plan, err)
		}
		for _, id := range []string{"a-3", "b-3"} {
			if _, err := again(k.c.Load)(t.Context(), id); err != nil && !errors.Is(err, documents.ErrNotFound) {
				t.Errorf("after %s: %v", point, err)
			}
		}
	}
	k.rounds(j)
	k.there("after", "d-", "f-")
	k.e.verified("customers")
}

// Retention goes on where DOCS is lost, and a repair brings back what it left alone.
func TestDocumentRetentionOfALostFront(t *testing.T) {
	t.Parallel()
	k := keepDocuments(t, -1, false)
	j := k.closing()
	if err := k.e.js().DeleteStream(t.Context(), schemas.StreamDocs); err != nil {
		t.Fatal(err)
	}
	k.e.setUpAgain()
	k.rounds(j)
	k.e.carryOut(k.e.plan())
	k.c = k.e.documents("customers")
	k.there("repaired", "d-", "f-")
	k.e.verified("customers")
}
