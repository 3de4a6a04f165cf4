package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

func docsTopic() schemas.Topic { return schemas.NewTopicOf(kinds.Document, "customers") }

// documents opens a topic's documents, over a connection of their own.
func (e *env) documents(topic string, change ...func(*documents.Config)) *documents.Collection {
	e.t.Helper()
	cfg := documents.Config{By: "test", Archive: archive.New(e.reg, e.db)}
	for _, c := range change {
		c(&cfg)
	}
	c, err := documents.Open(e.t.Context(), e.connect(), topic, cfg)
	if err != nil {
		e.t.Fatal(err)
	}
	return c
}

// ownedDocs runs Almanac with documents whose field "owner" names a user.
func ownedDocs(t *testing.T) (*env, *documents.Collection) {
	t.Helper()
	topic := docsTopic()
	topic.Documents.UserField = "owner"
	e := running(t, topic)
	return e, e.documents("customers")
}

// create makes documents named prefix and a number, by 16 writers.
func create(t testing.TB, c *documents.Collection, prefix, path string, n int) {
	t.Helper()
	embeddedtest.Each(16, n, func(i int) {
		if _, err := c.Create(t.Context(), documents.Draft{ID: fmt.Sprint(prefix, i), Path: path, Body: fmt.Appendf(nil, `{"n":%d}`, i)}); err != nil {
			t.Error(err)
		}
	})
}

// verified waits until verify proves a topic, with nothing pending.
func (e *env) verified(topic string) {
	e.t.Helper()
	v, err := verify.New(e.connect(), e.reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	eventually(e.t, time.Minute, func() error {
		r, err := v.Fronts().Run(e.t.Context(), topic)
		if err != nil {
			return err
		}
		if tr := r.Topics[0]; tr.Pending > 0 || tr.Dead > 0 || !r.OK() || tr.Front != nil && tr.Front.Waiting+tr.Front.Differ > 0 {
			return fmt.Errorf("%+v, %q", tr, r.Problems)
		}
		return nil
	})
}

// list reads all pages of a path.
func list(t testing.TB, c *documents.Collection, s documents.Selection) (docs []*documents.Document, pages []int) {
	t.Helper()
	for {
		page, err := answered(func() (*documents.Page, error) { return c.List(t.Context(), s) })
		if err != nil {
			t.Fatal(err)
		}
		docs, pages = append(docs, page.Documents...), append(pages, len(page.Documents))
		if s.Cursor = page.Cursor; s.Cursor == "" {
			return docs, pages
		}
	}
}

// Every version of a document becomes one row, and the topic is proven. What a list says
// is the same before and after.
func TestDocumentsJourney(t *testing.T) {
	t.Parallel()
	e := start(t, docsTopic())
	c := e.documents("customers")
	create(t, c, "d-", "se/uppsala", 30)
	create(t, c, "e-", "se/lund", 3)
	for i := range 10 {
		if _, err := c.Update(t.Context(), fmt.Sprint("d-", i), documents.IfVersion(1), []byte(`{"n":-1}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Remove(t.Context(), "d-3", documents.Always); err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		t.Helper()
		docs, _ := list(t, c, documents.Selection{Path: "se/uppsala"})
		seen := map[string]bool{}
		for i, d := range docs {
			if seen[d.ID] || d.ID == "d-3" || d.Path != "se/uppsala" {
				t.Errorf("%s: %+v is listed", when, d)
			}
			seen[d.ID] = true
			want := `{"n":-1}`
			if d.Version == 1 {
				want = fmt.Sprintf(`{"n":%s}`, strings.TrimPrefix(d.ID, "d-"))
			}
			if string(d.Body) != want {
				t.Errorf("%s: %s is %s, expected %s", when, d.ID, d.Body, want)
			}
			if i > 0 && d.Created.After(docs[i-1].Created) {
				t.Errorf("%s: %s was created after the one before it", when, d.ID)
			}
		}
		if len(docs) != 29 {
			t.Errorf("%s: %d documents are listed, expected 29", when, len(docs))
		}
		if h, err := again(c.History)(t.Context(), "d-3"); err != nil || len(h) != 3 || h[0].Op != schemas.OpStored || h[1].Version != 2 || h[2].Op != schemas.OpRemoved {
			t.Errorf("%s: the history of d-3 is %+v, %v", when, h, err)
		}
	}
	look("before anything is routed")
	e.router()
	e.sink()
	e.stored("customers", 44, time.Minute)
	look("stored")
	e.verified("customers")
	if n := e.count("SELECT count() FROM (SELECT doc_id, max(version) AS m, count() AS n, uniqExact(version) AS u FROM %s GROUP BY doc_id HAVING n != m OR u != m)", e.table("customers")); n != 0 {
		t.Errorf("%d documents have gaps or doubles among their versions", n)
	}
	if n := e.count("SELECT count() FROM `%s`.customers_latest", e.srv.Database); n != 32 {
		t.Errorf("the view of the newest versions has %d rows, expected 32", n)
	}
}

// Pages are full, no document comes twice and none is passed over while others are
// written, and a cursor of another path is refused.
func TestDocumentsPages(t *testing.T) {
	t.Parallel()
	e := running(t, docsTopic())
	c := e.documents("customers")
	create(t, c, "d-", "se", 1203)
	newest, err := again(c.List)(t.Context(), documents.Selection{Path: "se", Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	from := newest.Documents[0].Created.Add(1) // by the server's clock, which is behind this machine's by an answer's time
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, _ = c.Create(ctx, documents.Draft{ID: fmt.Sprintf("w%d-%d", w, i), Path: "se", Body: []byte(`{}`)})
			}
		})
	}
	docs, pages := list(t, c, documents.Selection{Path: "se", To: from})
	stop()
	wg.Wait()
	if fmt.Sprint(pages) != "[500 500 203]" {
		t.Errorf("pages of %v", pages)
	}
	seen := map[string]bool{}
	for _, d := range docs {
		if seen[d.ID] {
			t.Errorf("%s came twice", d.ID)
		}
		seen[d.ID] = true
	}
	page, err := again(c.List)(t.Context(), documents.Selection{Path: "se", Limit: 10})
	if err != nil || page.Cursor == "" {
		t.Fatal(page, err)
	}
	for name, s := range map[string]documents.Selection{
		"another path": {Path: "no", Cursor: page.Cursor}, "another range": {Path: "se", Cursor: page.Cursor, From: from}, "no cursor": {Path: "se", Cursor: "x"},
	} {
		if _, err := again(c.List)(t.Context(), s); !errors.Is(err, schemas.ErrRequest) {
			t.Errorf("the cursor with %s: %v", name, err)
		}
	}
}

// A document that changed in a range of time is found once, in ranges in which it did not
// change not at all.
func TestDocumentsChanged(t *testing.T) {
	t.Parallel()
	e := start(t, docsTopic())
	ten := time.Now().UTC().Truncate(time.Hour).Add(-2 * time.Hour)
	now := ten
	c := e.documents("customers", func(cfg *documents.Config) { cfg.Now = func() time.Time { return now } })
	now = ten.Add(10 * time.Second)
	create(t, c, "d", "", 1)
	for _, at := range []time.Duration{50 * time.Second, 7 * time.Minute} {
		now = ten.Add(at)
		if _, err := c.Update(t.Context(), "d0", documents.Always, fmt.Appendf(nil, `{"at":%q}`, at)); err != nil {
			t.Fatal(err)
		}
	}
	look := func(when string) {
		t.Helper()
		for _, w := range []struct{ from, to, n int }{{0, 1, 1}, {7, 8, 1}, {2, 6, 0}, {0, 60, 1}} {
			page, err := again(c.Changed)(t.Context(), documents.Selection{All: true, From: ten.Add(time.Duration(w.from) * time.Minute), To: ten.Add(time.Duration(w.to) * time.Minute)})
			if err != nil || len(page.Documents) != w.n || w.n == 1 && page.Documents[0].Version != 3 {
				t.Errorf("%s: from minute %d to %d: %+v, %v; expected %d", when, w.from, w.to, page, err, w.n)
			}
		}
	}
	look("before anything is routed")
	e.router()
	e.sink()
	e.stored("customers", 3, time.Minute)
	look("stored")
	create(t, e.documents("customers"), "x", "a/b", 200)
	s, found := documents.Selection{All: true, From: ten.Add(time.Hour), Limit: 70}, map[string]bool{}
	for {
		page, err := again(e.documents("customers").Changed)(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Documents {
			if found[d.ID] {
				t.Errorf("%s came twice", d.ID)
			}
			found[d.ID] = true
		}
		if s.Cursor = page.Cursor; s.Cursor == "" {
			break
		}
	}
	if len(found) != 200 {
		t.Errorf("%d documents changed, expected 200", len(found))
	}
}

// What is not a record in DOCS becomes a dead letter, and so does what a producer without
// Almanac publishes to EVENTS for such a topic.
func TestDocumentsMisplaced(t *testing.T) {
	t.Parallel()
	e := running(t, docsTopic())
	c := e.documents("customers")
	create(t, c, "d", "", 3)
	if _, err := e.js().Publish(t.Context(), schemas.DocSubject("customers", 1, "stray"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := e.js().Publish(t.Context(), schemas.EventsSubject("customers", schemas.MonthOf(time.Now().UnixNano()), 0), []byte(`{"message":"x"}`)); err != nil {
		t.Fatal(err)
	}
	reasons := func(topic string) string {
		msg, err := e.js().Stream(t.Context(), schemas.StreamShards)
		if err != nil {
			return err.Error()
		}
		last, err := msg.GetLastMsgForSubject(t.Context(), schemas.DeadSubject(topic))
		if err != nil {
			return err.Error()
		}
		return last.Header.Get(schemas.HeaderReason)
	}
	eventually(t, time.Minute, func() error {
		if a, b := reasons("customers"), reasons(schemas.NoTopic); a != "not-a-record" || b != "wrong-kind" {
			return fmt.Errorf("dead letters: %s and %s", a, b)
		}
		return nil
	})
	e.stored("customers", 3, time.Minute)
}
