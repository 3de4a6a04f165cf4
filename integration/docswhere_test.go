package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// A list by a filter has the documents whose present version fulfils it, in full pages,
// wherever that version is: in DOCS alone, stored, or both. An older version does not count.
func TestDocumentsWhere(t *testing.T) {
	t.Parallel()
	// "t" is also the name of a column of the reader's answer.
	e := start(t, schemas.NewTopicOf(kinds.Document, "customers", schemas.Field{Name: "status", Type: schemas.TypeLowCardinality}, schemas.Field{Name: "t", Type: schemas.TypeInt64}))
	c := e.documents("customers")
	body := func(status string, i int) []byte { return fmt.Appendf(nil, `{"status":%q,"t":%d}`, status, i) }
	const n = 700
	active := map[string]bool{}
	parallel(t, 16, func(w int) {
		for i := w; i < n; i += 16 {
			status := "closed"
			if i%3 == 0 {
				status = "active"
			}
			if _, err := c.Create(t.Context(), documents.Draft{ID: fmt.Sprint("d-", i), Path: "p", Body: body(status, i)}); err != nil {
				t.Error(err)
			}
		}
	})
	for i := 0; i < n; i += 3 {
		active[fmt.Sprint("d-", i)] = true
	}
	look := func(when string) {
		t.Helper()
		docs, pages := list(t, c, documents.Selection{Path: "p", Where: "status = 'active'", Limit: 50})
		var got []string
		for i, d := range docs {
			if !active[d.ID] || !strings.Contains(string(d.Body), `"status":"active"`) {
				t.Errorf("%s: %s is listed: version %d %s", when, d.ID, d.Version, d.Body)
			}
			if i > 0 && d.Created.After(docs[i-1].Created) {
				t.Errorf("%s: %s is not in order", when, d.ID)
			}
			got = append(got, d.ID)
		}
		slices.Sort(got)
		if len(slices.Compact(got)) != len(active) || len(docs) != len(active) {
			t.Errorf("%s: %d documents, %d of them different, expected %d", when, len(docs), len(slices.Compact(got)), len(active))
		}
		for i, size := range pages {
			if size != 50 && i < len(pages)-1 {
				t.Errorf("%s: pages of %v", when, pages)
				break
			}
		}
		one, _ := list(t, c, documents.Selection{All: true, Where: "t = 9 AND path = 'p' AND version >= 1"})
		if len(one) != 1 || one[0].ID != "d-9" {
			t.Errorf("%s: by a field that has the name of a column: %+v", when, one)
		}
	}
	look("before anything is routed")
	e.router()
	e.sink()
	e.stored("customers", n, time.Minute)
	look("stored")
	// What is active and what not changes: of some the older version is stored, of some cold.
	change := func(i int, status string) {
		t.Helper()
		if _, err := c.Update(t.Context(), fmt.Sprint("d-", i), documents.Always, body(status, i)); err != nil {
			t.Fatal(err)
		}
		delete(active, fmt.Sprint("d-", i))
		if status == "active" {
			active[fmt.Sprint("d-", i)] = true
		}
	}
	if done := e.clean(e.cleaner(), cold); done.Stubbed != n {
		t.Fatalf("%+v", done)
	}
	for i := range 60 {
		change(i, []string{"closed", "active"}[i%2])
	}
	if err := c.Remove(t.Context(), "d-63", documents.Always); err != nil {
		t.Fatal(err)
	}
	delete(active, "d-63")
	look("changed")
	e.stored("customers", n+61, time.Minute)
	look("changes are stored")

	page, err := again(c.List)(t.Context(), documents.Selection{Path: "p", Where: "status = 'active' AND ts > -1h", Limit: 10})
	if err != nil || page.Cursor == "" {
		t.Fatal(page, err)
	}
	if next, err := again(c.List)(t.Context(), documents.Selection{Path: "p", Where: "status = 'active' AND ts > -1h", Limit: 10, Cursor: page.Cursor}); err != nil || len(next.Documents) != 10 || next.Documents[0].ID == page.Documents[9].ID {
		t.Errorf("the next page: %+v, %v", next, err)
	}
	for name, s := range map[string]documents.Selection{
		"another filter": {Path: "p", Where: "status = 'closed'", Cursor: page.Cursor}, "no filter": {Path: "p", Cursor: page.Cursor},
	} {
		if _, err := again(c.List)(t.Context(), s); !errors.Is(err, schemas.ErrRequest) || !strings.Contains(err.Error(), "status = 'active'") {
			t.Errorf("the cursor with %s: %v", name, err)
		}
	}
	var bad *filter.Error
	if _, err := again(c.List)(t.Context(), documents.Selection{Path: "p", Where: "statuss = 'a'"}); !errors.As(err, &bad) || !strings.Contains(bad.Msg, "status") {
		t.Errorf("%v", err)
	}
}
