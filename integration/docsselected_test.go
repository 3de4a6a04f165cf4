package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Lists of the paths below one, without bodies, and in the order of writes are the same before documents are stored
// and after.
func TestDocumentsSelected(t *testing.T) {
	t.Parallel()
	e := start(t, schemas.NewTopicOf(kinds.Document, "customers", schemas.Field{Name: "status", Type: schemas.TypeLowCardinality}))
	c := e.documents("customers")
	for _, id := range []string{"se/a", "se/b", "se", "se/x/c", "sea/d", "/e"} {
		i := strings.LastIndex(id, "/")
		path, name := id[:max(i, 0)], id[i+1:]
		if i < 0 {
			path, name = id, "top"
		}
		if _, err := c.Create(t.Context(), documents.Draft{ID: name, Path: path, Body: []byte(`{"status":"new"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"c", "a", "top"} { // in another order than they were created
		if _, err := c.Update(t.Context(), id, documents.Always, []byte(`{"status":"old"}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Remove(t.Context(), "b", documents.Always); err != nil {
		t.Fatal(err)
	}
	look := func(when string) {
		t.Helper()
		changed := func(s documents.Selection) (docs []*documents.Document) {
			for s.Limit = 2; ; {
				page, err := again(c.Changed)(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				if docs, s.Cursor = append(docs, page.Documents...), page.Cursor; s.Cursor == "" {
					return docs
				}
			}
		}
		all, _ := list(t, c, documents.Selection{Path: "se", Below: true, Limit: 2})
		root, _ := list(t, c, documents.Selection{Below: true, NoBodies: true})
		for name, w := range map[string]struct {
			docs []*documents.Document
			want string
			body bool
		}{
			"below":                 {all, "c top a", true},
			"below the root":        {root, "e d c top a", false},
			"in the order of write": {changed(documents.Selection{All: true}), "d e c a top b", true},
			"written below":         {changed(documents.Selection{Path: "se", Below: true, NoBodies: true}), "c a top b", false},
			"written, by a field":   {changed(documents.Selection{All: true, Where: "status = 'old'"}), "c a top", true},
			"of one path":           {changed(documents.Selection{Path: "se"}), "a top b", true},
		} {
			var ids []string
			for _, d := range w.docs {
				if ids = append(ids, d.ID); (len(d.Body) > 0) != (w.body && d.Op != schemas.OpRemoved) || d.By != "test" || d.Version == 0 || d.Changed.IsZero() {
					t.Errorf("%s, %s: %+v", when, name, d)
				}
			}
			if got := strings.Join(ids, " "); got != w.want {
				t.Errorf("%s, %s: %s, expected %s", when, name, got, w.want)
			}
		}
	}
	look("on the way")
	e.router()
	e.sink()
	e.stored("customers", 10, time.Minute)
	look("stored")
}

// A document that is created again with the time of creation that its id had before is the new one: in lists, loads,
// its history and the view, and where both lives have the same versions.
func TestDocumentsCreatedAgain(t *testing.T) {
	t.Parallel()
	e := running(t, docsTopic())
	c := e.documents("customers")
	then := time.Date(2020, 1, 2, 3, 4, 5, 6, time.UTC)
	for life := range 2 {
		for version := range 2 {
			if _, err := c.Put(t.Context(), documents.Draft{ID: "a", Path: "p", Created: then, Body: fmt.Appendf(nil, `{"life":%d,"n":%d}`, life, version)}); err != nil {
				t.Fatal(err)
			}
		}
		if life == 1 {
			break
		}
		if err := c.Remove(t.Context(), "a", documents.Always); err != nil {
			t.Fatal(err)
		}
		e.stored("customers", 3, time.Minute)
		s, err := e.js().Stream(t.Context(), schemas.StreamDocs)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Purge(t.Context()); err != nil { // as after hot_for
			t.Fatal(err)
		}
	}
	look := func(when string) {
		t.Helper()
		for _, s := range []documents.Selection{{Path: "p"}, {All: true}, {Path: "p", To: then.Add(1)}} {
			docs, _ := list(t, c, s)
			if len(docs) != 1 || docs[0].Version != 2 || !docs[0].Created.Equal(then) || string(docs[0].Body) != `{"life":1,"n":1}` {
				t.Errorf("%s: %+v lists %d: %+v", when, s, len(docs), docs)
			}
		}
		history, err := again(c.History)(t.Context(), "a")
		var ops []string
		for _, d := range history {
			ops = append(ops, fmt.Sprint(d.Version, d.Op))
		}
		if err != nil || !slices.Equal(ops, []string{"1stored", "2updated", "3removed", "1stored", "2updated"}) {
			t.Errorf("%s: the history is %v, %v", when, ops, err)
		}
	}
	look("on the way")
	e.stored("customers", 5, time.Minute)
	look("stored")
	if n := e.count("SELECT count() FROM `%s`.customers_latest WHERE body = '{\"life\":1,\"n\":1}'", e.srv.Database); n != 1 {
		t.Errorf("the view has %d rows of the document", n)
	}
}
