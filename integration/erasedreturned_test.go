package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/timers"
)

// formOfErasure is how an erasure names a document and a timer, each of which has the form's name.
type formOfErasure struct {
	name           string
	user           string // of both
	docs, timers   erasure.Request
	redacted, asks bool // asks: it is carried out again only when a person asks for it
	moment         bool // it names the moment at which they were made
}

func formsOfErasure() []formOfErasure {
	where := func(docs, timers string) (erasure.Request, erasure.Request) {
		return erasure.Request{Where: docs}, erasure.Request{Where: timers}
	}
	named := func(user string) erasure.Request { return erasure.Request{Users: []string{user}} }
	forms := []formOfErasure{
		{name: "user", user: "u-user", docs: named("u-user"), timers: named("u-user")},
		{name: "redacted-user", user: "u-forgotten", docs: named("u-forgotten"), timers: named("u-forgotten"), redacted: true},
		{name: "moment", moment: true},
		{name: "filter"}, {name: "unsure-filter"}, {name: "user-and-filter", user: "u-both"}, {name: "redacted-filter", redacted: true, asks: true},
		{name: "stub", user: "u-stub", docs: named("u-stub"), timers: named("u-stub")},
	}
	forms[3].docs, forms[3].timers = where("doc_id = 'filter'", "timer_id = 'filter'")
	forms[4].docs, forms[4].timers = where(`body matches 'unsure-.ilter'`, `spec matches 'unsure-.ilter'`)
	forms[5].docs, forms[5].timers = where("doc_id = 'user-and-filter'", "timer_id = 'user-and-filter'")
	forms[5].docs.Users, forms[5].timers.Users = []string{"u-both"}, []string{"u-both"}
	forms[6].docs, forms[6].timers = where("doc_id = 'redacted-filter'", "timer_id = 'redacted-filter'")
	return forms
}

// erased reports whether an erasure is of the form.
func (f *formOfErasure) erased(e *ledger.Erasure) bool {
	req := f.docs
	if e.Topic == schemas.DefaultTimerTopic {
		req = f.timers
	}
	return slices.Equal(e.Users, req.Users) && e.Where == req.Where
}

// DOCS and TIMERS are restored from a copy from before erasures. ClickHouse has no row of the erased, so it cannot say
// what of them came back. No reader shows it, the erasures are carried out again all the same, and what others have stays.
// Of a filter that was redacted nothing is known: what it may mean is refused and named until a person asks for it.
func TestErasedRecordsLeaveAnOlderFront(t *testing.T) {
	t.Parallel()
	docs := docsTopic()
	docs.Documents.UserField = "owner"
	d := startOnDisk(t, docs)
	if _, err := fmt.Sscanf(d.srv.NATSURL, "nats://127.0.0.1:%d", &d.port); err != nil {
		t.Fatal(err)
	}
	te, c := d.timers(), d.documents("customers")
	forms, kept := formsOfErasure(), []string{"kept-1", "kept-2"}
	var names []string
	for i := range forms {
		names = append(names, forms[i].name)
	}
	stub, all := len(forms)-1, len(forms)+len(kept)
	made := map[string][2]time.Time{} // when a document, and a timer
	add := func(name, user string) {
		t.Helper()
		doc, err := c.Create(t.Context(), documents.Draft{ID: name, Path: "p", Body: fmt.Appendf(nil, `{"owner":%q,"name":%q}`, user, name)})
		if err != nil {
			t.Fatal(err)
		}
		tm, _, err := te.Create(t.Context(), timers.Draft{Group: "g", ID: name, Due: time.Now().Add(time.Hour), URL: te.url + name, User: user, Payload: json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		made[name] = [2]time.Time{doc.Changed, tm.UpdatedAt}
	}
	stopRouter, stopSink := d.router(), d.sink()
	add(forms[stub].name, forms[stub].user)
	d.stored("customers", 1, time.Minute)
	d.clean(d.cleaner(), cold) // its body leaves DOCS
	for i := range forms[:stub] {
		add(forms[i].name, forms[i].user)
	}
	for _, name := range kept {
		add(name, "u-kept")
	}
	d.stored("customers", uint64(all), time.Minute)
	d.stored(schemas.DefaultTimerTopic, uint64(all), time.Minute)
	older := filepath.Join(t.TempDir(), "older")
	stopRouter()
	stopSink()
	d.copyTo(older)
	stopRouter, stopSink = d.router(), d.sink()
	var again, asked []ledger.Erasure
	x := d.eraser()
	for i := range forms {
		f := &forms[i]
		for n, req := range []erasure.Request{f.docs, f.timers} {
			if req.Topic = []string{"customers", schemas.DefaultTimerTopic}[n]; f.moment {
				req.From, req.To = made[f.name][n], made[f.name][n].Add(1)
			}
			job, err := x.Start(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if f.asks {
				asked = append(asked, job)
			} else {
				again = append(again, job)
			}
		}
	}
	embeddedtest.Each(4, 2*len(forms), func(i int) {
		job := slices.Concat(again, asked)[i]
		job, err := x.Run(t.Context(), job.Topic, job.ID)
		if err != nil || job.State != ledger.Erased || job.Rows != 1 {
			t.Errorf("%+v, %v; expected one row", job, err)
		}
		if f := forms[slices.IndexFunc(forms, func(f formOfErasure) bool { return f.erased(&job) })]; f.redacted {
			if _, err := d.reg.AmendErasure(t.Context(), job.Topic, job.ID, func(e *ledger.Erasure) bool { *e = erasure.Redacted(*e); return true }); err != nil {
				t.Error(err)
			}
		}
	})
	has := func(stream, filter string) (ids []string) {
		t.Helper()
		for _, m := range d.messages(stream, filter) {
			if id := m.Subject[strings.LastIndexByte(m.Subject, '.')+1:]; !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		return ids
	}
	stopRouter()
	stopSink()
	d.takeOlder(older, schemas.StreamDocs, schemas.StreamTimers)
	if ids := has(schemas.StreamDocs, "docs.>"); len(ids) != all {
		t.Fatalf("DOCS came back with %q", ids)
	}
	reads := func(when string) {
		t.Helper()
		c := d.documents("customers")
		eventually(t, time.Minute, func() error { // its connection was cut
			_, err := te.Get(t.Context(), "g", kept[0])
			return err
		})
		for _, name := range names {
			if doc, err := c.Load(t.Context(), name); doc != nil || err == nil {
				t.Errorf("%s: the document %q is shown: %+v", when, name, doc)
			}
			if many, _ := c.LoadMany(t.Context(), []string{name}); len(many) > 0 && many[0] != nil {
				t.Errorf("%s: the document %q is among many: %+v", when, name, many[0])
			}
			if tm, err := te.Get(t.Context(), "g", name); err == nil && tm.State == "pending" {
				t.Errorf("%s: the timer %q is shown: %+v", when, name, tm)
			}
		}
		for _, name := range kept {
			if _, err := c.Load(t.Context(), name); err != nil {
				t.Errorf("%s: another's document: %v", when, err)
			}
			if _, err := te.Get(t.Context(), "g", name); err != nil {
				t.Errorf("%s: another's timer: %v", when, err)
			}
		}
		page, err := te.List(t.Context(), "g", timers.Filter{})
		if err != nil {
			t.Errorf("%s: %v", when, err)
		}
		for _, tm := range page.Timers {
			if slices.Contains(names, tm.ID) && tm.State == "pending" {
				t.Errorf("%s: the timer %q is in a list", when, tm.ID)
			}
		}
	}
	reads("before it is carried out again")
	did, err := d.eraser().Agree(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range again {
		if !slices.Contains(did.Again, job.ID) {
			t.Errorf("%s, users %q, where %q, of %s was not carried out again: %+v", job.ID, job.Users, job.Where, job.Topic, did)
		}
	}
	left := append(slices.Clone(kept), "redacted-filter")
	check := func() {
		t.Helper()
		for stream, filter := range map[string]string{schemas.StreamDocs: "docs.>", schemas.StreamTimers: "timers.>"} {
			if ids := has(stream, filter); len(ids) != len(left) {
				t.Errorf("%s has %q, expected %q", stream, ids, left)
			}
		}
	}
	check()
	reads("carried out again")
	if did, err := d.eraser().Agree(t.Context(), true); err != nil || len(did.Again) > 0 {
		t.Errorf("a second time: %+v, %v", did, err)
	}
	for _, job := range asked {
		rep := d.fronts(job.Topic)
		if !slices.ContainsFunc(rep.Problems, func(p string) bool {
			return strings.Contains(p, `"redacted-filter"`) && (strings.Contains(p, "erase resume "+job.ID) || strings.Contains(p, "run `almanac repair`"))
		}) {
			t.Errorf("nothing says that %s may be in its front: %q", job.ID, rep.Problems)
		}
		if _, err := d.eraser().Run(t.Context(), job.Topic, job.ID); err != nil {
			t.Error(err)
		}
		if _, err := d.eraser().Run(t.Context(), job.Topic, job.ID); !errors.Is(err, erasure.ErrRequest) {
			t.Errorf("a second time: %v", err)
		}
	}
	left = kept
	check()
	reads("asked for")
	d.router()
	d.sink()
	eventually(t, time.Minute, func() error {
		if err := d.repairer().Apply(t.Context(), d.plan(), func(*repair.Action, error) {}); err != nil {
			return err // a router or a sink may be faster: it is run again
		}
		rep, err := d.proof("")
		if err == nil && (!rep.OK() || rep.Pending > 0) {
			err = fmt.Errorf("%q", rep.Problems)
		}
		return err
	})
	if calls := te.calls; len(calls) > 0 {
		t.Errorf("called: %+v", calls)
	}
}
