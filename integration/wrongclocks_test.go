package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// wrongBy are how far clocks of writers are off.
var wrongBy = map[string]time.Duration{
	"25 hours ahead": 25 * time.Hour,
	"43 days ahead":  43 * 24 * time.Hour,
	"a year ahead":   365 * 24 * time.Hour,
	"43 days behind": -43 * 24 * time.Hour,
	"a year behind":  -365 * 24 * time.Hour,
}

// wrong is a clock that is off.
func wrong(by time.Duration) func() time.Time { return func() time.Time { return time.Now().Add(by) } }

// near reports whether a time is now, as far as a slow machine can tell.
func near(at time.Time) error {
	if off := time.Since(at); off.Abs() > time.Hour {
		return fmt.Errorf("the time is %s, %s off", at, off)
	}
	return nil
}

// A writer's machine may have any clock: a document is written by the server's. What another program
// wrote by a wrong one is stored all the same, and the next write of the document has the right time again.
func TestDocumentsOfWrongClocks(t *testing.T) {
	t.Parallel()
	topic := docsTopic()
	topic.KeepDays = 30
	e := running(t, topic)
	right := e.documents("customers")
	stored := uint64(0)
	for name, by := range wrongBy {
		id := fmt.Sprint("d-", int(by/time.Hour))
		machine := e.documents("customers", func(c *documents.Config) { c.Write.Local = wrong(by) })
		foreign := e.documents("customers", func(c *documents.Config) { c.Now = wrong(by) })
		d, err := machine.Create(t.Context(), documents.Draft{ID: id, Path: "p", Body: []byte(`{"n":1}`)})
		if err != nil || near(d.Changed) != nil {
			t.Fatalf("%s: created: %+v, %v", name, d, err)
		}
		if _, err = foreign.Update(t.Context(), id, documents.IfVersion(1), []byte(`{"n":2}`)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for version := uint64(3); version <= 4; version++ {
			if d, err = right.Update(t.Context(), id, documents.IfVersion(version-1), fmt.Appendf(nil, `{"n":%d}`, version)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if near(d.Changed) != nil || d.Created.After(d.Changed) {
				t.Errorf("%s: version %d: %v", name, version, near(d.Changed))
			}
		}
		stored += 4
		// From its creation on.
		if _, err = foreign.Create(t.Context(), documents.Draft{ID: id + "-new", Path: "p", Body: []byte(`{"n":1}`)}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if d, err = machine.Update(t.Context(), id+"-new", documents.IfVersion(1), []byte(`{"n":2}`)); err != nil || near(d.Changed) != nil || d.Created.After(d.Changed) {
			t.Fatalf("%s: %+v, %v", name, d, err)
		}
		stored += 2
	}
	e.stored("customers", stored, time.Minute)
	if letters := e.lettersNow("customers"); len(letters) > 0 {
		t.Errorf("%d dead letters, the first: %s", len(letters), letters[0].Detail)
	}
	docs, _ := list(t, right, documents.Selection{Path: "p"})
	if len(docs) != 2*len(wrongBy) {
		t.Errorf("%d documents are listed, want %d", len(docs), 2*len(wrongBy))
	}
	for _, d := range docs {
		if d.Version != 4 && d.Version != 2 || near(d.Changed) != nil {
			t.Errorf("listed: %+v", d)
		}
	}
	e.verified("customers")
}

// A timer is created, changed and due by the server's clock, whatever the machine's is. Records that another
// program wrote by a wrong one are stored.
func TestTimersOfWrongClocks(t *testing.T) {
	t.Parallel()
	e := running(t).timers()
	w, err := fronts.Open(t.Context(), e.reg.JetStream(), schemas.StreamTimers, fronts.Config{})
	if err != nil {
		t.Fatal(err)
	}
	stored := uint64(0)
	for name, by := range wrongBy {
		machine, err := timers.Open(t.Context(), e.connect(), e.reg, schemas.DefaultTimerTopic, timers.Config{Write: fronts.Config{Local: wrong(by)}})
		if err != nil {
			t.Fatal(err)
		}
		id := fmt.Sprint("t-", int(by/time.Hour))
		tm, _, err := machine.Create(t.Context(), timers.Draft{Group: "g", ID: id, Due: time.Now().Add(time.Hour), URL: e.url})
		if err != nil || near(tm.CreatedAt) != nil {
			t.Fatalf("%s: %+v, %v", name, tm, err)
		}
		if tm, err = machine.FireNow(t.Context(), "g", id); err != nil || near(tm.Due) != nil || near(tm.UpdatedAt) != nil {
			t.Fatalf("%s: %+v, %v", name, tm, err)
		}
		g, err := e.reg.TimerGroup(t.Context(), schemas.DefaultTimerTopic, "g")
		if err != nil {
			t.Fatal(err)
		}
		key, err := g.Key(id+"-foreign", 4)
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now()
		foreign, _, err := timer.Create(key, nil, timer.Draft{Due: now.Add(time.Hour).UnixNano(), Life: schemas.NewID(now.UnixNano()), Spec: timer.Spec{URL: e.url}}, now.Add(by).UnixNano())
		if err != nil {
			t.Fatal(err)
		}
		h, data, err := foreign.Message()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Put(t.Context(), fronts.Record{Subject: key.Subject(), Header: h, Data: data}); err != nil {
			t.Fatal(err)
		}
		if _, err := machine.Delete(t.Context(), "g", id+"-foreign", timers.Always); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if tm, err = machine.Get(t.Context(), "g", id+"-foreign"); err != nil || near(tm.UpdatedAt) != nil {
			t.Fatalf("%s: %+v, %v", name, tm, err)
		}
		stored += 4
	}
	e.stored(schemas.DefaultTimerTopic, stored, time.Minute)
	if letters := e.lettersNow(schemas.DefaultTimerTopic); len(letters) > 0 {
		t.Errorf("%d dead letters, the first: %s", len(letters), letters[0].Detail)
	}
	e.verified(schemas.DefaultTimerTopic)
}
