package integration

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/cleaner"
	"github.com/almanac-events/almanac/schemas"
)

// cleaner is a cleaner of its own, as another process would have.
func (e *env) cleaner(change ...func(*cleaner.Config)) *cleaner.Cleaner {
	e.t.Helper()
	cfg := cleaner.Config{Registry: e.registry(e.connect()), DB: e.sinkDB, MinAge: 5 * time.Second}
	for _, c := range change {
		c(&cfg)
	}
	return cleaner.New(cfg)
}

// clean does one round at a time after now.
func (e *env) clean(c *cleaner.Cleaner, after time.Duration) cleaner.Done {
	e.t.Helper()
	done, err := c.Round(e.t.Context(), time.Now().Add(after))
	if err != nil {
		e.t.Fatal(err)
	}
	return done
}

const (
	hot  = time.Minute // younger than hot_for, older than settle
	cold = time.Hour
)

// Documents that are stored become stubs once they are no longer hot. Load, list, changes
// and history say the same before and after; a cold document is created never, updated by
// its version, and removed. What was removed leaves nothing, and its id begins again.
func TestDocumentsCold(t *testing.T) {
	t.Parallel()
	began := time.Now() // nothing has settled by then, however long what comes next takes
	e := running(t, docsTopic())
	c := e.documents("customers")
	create(t, c, "d-", "se/uppsala", 40)
	for i := range 10 {
		if _, err := c.Update(t.Context(), fmt.Sprint("d-", i), documents.IfVersion(1), []byte(`{"n":-1}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Remove(t.Context(), "d-39", documents.Always); err != nil {
		t.Fatal(err)
	}
	e.stored("customers", 51, time.Minute)
	said := func() string {
		t.Helper()
		out := ""
		for i := range 40 {
			d, err := again(c.Load)(t.Context(), fmt.Sprint("d-", i))
			if err != nil && !errors.Is(err, documents.ErrNotFound) {
				t.Fatal(err)
			}
			if d != nil {
				out += fmt.Sprintln(d.ID, d.Path, d.Version, d.Created, d.Changed, d.By, string(d.Body))
			}
		}
		docs, _ := list(t, c, documents.Selection{Path: "se/uppsala"})
		for _, d := range docs {
			out += fmt.Sprintln(d.ID, d.Version, string(d.Body))
		}
		for _, id := range []string{"d-0", "d-39"} {
			h, err := again(c.History)(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range h {
				out += fmt.Sprintln(d.ID, d.Version, d.Op, string(d.Body))
			}
		}
		page, err := again(c.Changed)(t.Context(), documents.Selection{All: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Documents {
			out += fmt.Sprintln(d.ID, d.Version, d.Op, string(d.Body))
		}
		return out
	}
	before := said()
	clean := e.cleaner()
	if done := e.clean(clean, time.Until(began)); done != (cleaner.Done{}) {
		t.Fatalf("left before it settled: %+v", done)
	}
	if done := e.clean(clean, hot); done.Stubbed != 0 || done.Refreshed+done.Purged != 11 {
		t.Fatalf("while they are hot: %+v, expected the older versions of 11 to leave", done)
	}
	if n := len(e.messages(schemas.StreamDocs, "docs.customers.>")); n != 40 {
		t.Fatalf("%d messages in DOCS, expected one a document", n)
	}
	if now := said(); now != before {
		t.Fatalf("after the refresh:\n%s\nbefore:\n%s", now, before)
	}
	var cooled cleaner.Done
	eventually(t, time.Minute, func() error { // a refresh leaves once a router has passed it
		done := e.clean(clean, cold)
		cooled.Stubbed, cooled.Purged, cooled.Held = cooled.Stubbed+done.Stubbed, cooled.Purged+done.Purged, done.Held
		if cooled.Stubbed != 39 || cooled.Purged != 1 || cooled.Held != 0 {
			return fmt.Errorf("%+v, expected 39 stubs and one purge", cooled)
		}
		return nil
	})
	if now := said(); now != before {
		t.Fatalf("cold:\n%s\nbefore:\n%s", now, before)
	}
	if done := e.clean(clean, cold); done != (cleaner.Done{}) {
		t.Fatalf("done again: %+v", done)
	}
	if done := e.clean(e.cleaner(), cold); done != (cleaner.Done{}) {
		t.Fatalf("done again by another: %+v", done)
	}
	st, err := c.Status(t.Context())
	if err != nil || st.Cold != 39 || st.Hot+st.Removed+st.Unarchived != 0 {
		t.Fatalf("%+v, %v", st, err)
	}
	e.verified("customers")

	without := e.documents("customers", func(cfg *documents.Config) { cfg.Archive = nil }) // no ClickHouse
	if _, err := without.Create(t.Context(), documents.Draft{ID: "d-1", Body: []byte(`{}`)}); !errors.Is(err, documents.ErrExists) {
		t.Errorf("a cold document was created: %v", err)
	}
	var refused *documents.VersionError
	if _, err := without.Update(t.Context(), "d-1", documents.IfVersion(1), []byte(`{}`)); !errors.As(err, &refused) || refused.Have != 2 {
		t.Errorf("a cold document updated by another version: %v", err)
	}
	if d, err := without.Update(t.Context(), "d-1", documents.IfVersion(2), []byte(`{"n":3}`)); err != nil || d.Version != 3 || d.Path != "se/uppsala" {
		t.Errorf("a cold document updated: %+v, %v", d, err)
	}
	if err := without.Remove(t.Context(), "d-2", documents.IfVersion(2)); err != nil {
		t.Error(err)
	}
	if d, err := without.Create(t.Context(), documents.Draft{ID: "d-39", Path: "se/uppsala", Body: []byte(`{"again":1}`)}); err != nil || d.Version != 1 {
		t.Errorf("an id that has left, created again: %+v, %v", d, err)
	}
	look := func(when string) {
		t.Helper()
		docs, _ := list(t, c, documents.Selection{Path: "se/uppsala"})
		found := map[string]string{}
		for _, d := range docs {
			if found[d.ID] != "" {
				t.Errorf("%s: %s came twice", when, d.ID)
			}
			found[d.ID] = string(d.Body)
		}
		if len(found) != 39 || found["d-1"] != `{"n":3}` || found["d-2"] != "" || found["d-39"] != `{"again":1}` {
			t.Errorf("%s: listed %v", when, found)
		}
		if h, err := again(c.History)(t.Context(), "d-39"); err != nil || len(h) != 3 || h[0].Version != 1 || h[1].Op != schemas.OpRemoved || h[2].Version != 1 {
			t.Errorf("%s: the history of both lives: %+v, %v", when, h, err)
		}
	}
	look("before they are stored")
	e.stored("customers", 54, time.Minute)
	look("stored")
	e.clean(clean, cold)
	look("cold")
	e.verified("customers")
}

// Of a document whose newest version is too young for the walk the older ones leave, and it stays as
// it is: the cleaner asks what came after the walk.
func TestCleanerAsksWhatCameLater(t *testing.T) {
	t.Parallel()
	e := running(t, docsTopic())
	c := e.documents("customers")
	const n = 70 // more than are asked for at once
	create(t, c, "d-", "p", n)
	first := e.messages(schemas.StreamDocs, "docs.customers.>")
	for i := range n / 2 {
		if _, err := c.Update(t.Context(), fmt.Sprint("d-", i), documents.IfVersion(1), []byte(`{"n":-1}`)); err != nil {
			t.Fatal(err)
		}
	}
	e.stored("customers", n+n/2, time.Minute)
	last := first[0].Time
	for _, m := range first {
		if m.Time.After(last) {
			last = m.Time
		}
	}
	done, err := e.cleaner().Round(t.Context(), last.Add(5*time.Second)) // as old as settle
	if err != nil || done != (cleaner.Done{Purged: n / 2}) {
		t.Fatalf("%+v, %v; expected %d older versions to leave", done, err, n/2)
	}
	if left := e.messages(schemas.StreamDocs, "docs.customers.>"); len(left) != n {
		t.Errorf("%d messages in DOCS, expected one of each of %d documents", len(left), n)
	}
	for i := range n {
		if d, err := again(c.Load)(t.Context(), fmt.Sprint("d-", i)); err != nil || (string(d.Body) == `{"n":-1}`) != (i < n/2) {
			t.Errorf("d-%d: %+v, %v", i, d, err)
		}
	}
	e.verified("customers")
}

// While ClickHouse is not there nothing leaves, and writes go on.
func TestNothingLeavesUnstored(t *testing.T) {
	t.Parallel()
	e := start(t, docsTopic())
	e.router()
	c := e.documents("customers")
	create(t, c, "d-", "", 20)
	for range 5 {
		if done := e.clean(e.cleaner(), cold); done != (cleaner.Done{}) {
			t.Fatalf("%+v left without a row", done)
		}
		if _, err := c.Update(t.Context(), "d-1", documents.Always, []byte(`{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(e.messages(schemas.StreamDocs, "docs.customers.>")); n != 25 {
		t.Fatalf("%d records, expected 25", n)
	}
	e.sink()
	e.stored("customers", 25, time.Minute)
	eventually(t, time.Minute, func() error {
		st, err := c.Status(t.Context())
		if err == nil && st.Unarchived > 0 {
			err = fmt.Errorf("%d are not archived", st.Unarchived)
		}
		return err
	})
	if done := e.clean(e.cleaner(), cold); done.Stubbed != 20 {
		t.Fatalf("%+v, expected 20 stubs", done)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.cleaner().Round(ctx, time.Now().Add(cold)); err == nil {
		t.Error("a round that was cut off ended well")
	}
}

// A list of all documents has those of every path, hot and cold, in one order. A document
// is not found under another path than its own.
func TestDocumentsEverywhere(t *testing.T) {
	t.Parallel()
	e := running(t, docsTopic())
	c := e.documents("customers")
	for i, path := range []string{"", "se/uppsala", "se/lund", "no"} {
		create(t, c, fmt.Sprint("d", i, "-"), path, 10)
	}
	look := func(when string) {
		t.Helper()
		docs, pages := list(t, c, documents.Selection{All: true, Limit: 15})
		seen := map[string]bool{}
		for i, d := range docs {
			if seen[d.ID] || len(d.Body) == 0 || i > 0 && d.Created.After(docs[i-1].Created) {
				t.Errorf("%s: %+v", when, d)
			}
			seen[d.ID] = true
		}
		if fmt.Sprint(pages) != "[15 15 10]" || len(seen) != 40 {
			t.Errorf("%s: pages of %v", when, pages)
		}
		if docs, _ := list(t, c, documents.Selection{}); len(docs) != 10 {
			t.Errorf("%s: %d documents do not have a path", when, len(docs))
		}
		if d, err := c.LoadIn(t.Context(), "se/uppsala", "d1-1"); err != nil || len(d.Body) == 0 {
			t.Errorf("%s: %+v, %v", when, d, err)
		}
		for _, path := range []string{"se/lund", "se", ""} {
			if _, err := c.LoadIn(t.Context(), path, "d1-1"); !errors.Is(err, documents.ErrNotFound) {
				t.Errorf("%s: under %q: %v", when, path, err)
			}
		}
	}
	look("before they are stored")
	e.stored("customers", 40, time.Minute)
	e.clean(e.cleaner(), cold)
	look("cold")
	page, err := again(c.List)(t.Context(), documents.Selection{All: true, Limit: 1})
	if err != nil || page.Cursor == "" {
		t.Fatal(page, err)
	}
	if _, err := again(c.List)(t.Context(), documents.Selection{Cursor: page.Cursor}); !errors.Is(err, schemas.ErrRequest) {
		t.Errorf("the cursor of all documents for a path: %v", err)
	}
	if _, err := again(c.List)(t.Context(), documents.Selection{All: true, Path: "se"}); !errors.Is(err, schemas.ErrRequest) {
		t.Errorf("all, and a path: %v", err)
	}
}
