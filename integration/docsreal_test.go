package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/schemas"
)

// Earthquakes by their own ids, and repositories of GitHub's events by theirs, imported
// twice, hot and cold: the second time every one exists, and nothing changes.
func TestImportDocumentsTwice(t *testing.T) {
	t.Parallel()
	var quakes struct {
		Features []json.RawMessage `json:"features"`
	}
	if err := json.Unmarshal(inputtest.File(t, "documents-earthquakes.json.gz"), &quakes); err != nil {
		t.Fatal(err)
	}
	var docs []documents.Draft
	for _, f := range quakes.Features {
		var q struct{ ID string }
		if err := json.Unmarshal(f, &q); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, documents.Draft{ID: q.ID, Path: "quakes", Body: f})
	}
	repos := map[int64]bool{}
	for line := range bytes.Lines(inputtest.File(t, "events-github.jsonl.gz")) {
		var ev struct{ Repo json.RawMessage }
		var repo struct{ ID int64 }
		if err := errors.Join(json.Unmarshal(line, &ev), json.Unmarshal(ev.Repo, &repo)); err != nil {
			t.Fatal(err)
		}
		if !repos[repo.ID] {
			docs = append(docs, documents.Draft{ID: fmt.Sprint(repo.ID), Path: "repos", Body: ev.Repo})
		}
		repos[repo.ID] = true
	}
	e := running(t, docsTopic())
	c := e.documents("customers")
	load := func() (created, exist int64) {
		t.Helper()
		var n, x atomic.Int64
		parallel(t, 32, func(w int) {
			for i := w; i < len(docs); i += 32 {
				switch _, err := c.Create(t.Context(), docs[i]); {
				case err == nil:
					n.Add(1)
				case errors.Is(err, documents.ErrExists):
					x.Add(1)
				default:
					t.Error(err)
				}
			}
		})
		return n.Load(), x.Load()
	}
	all := int64(len(docs))
	if created, exist := load(); created != all || exist != 0 {
		t.Fatalf("%d created and %d existed, expected %d and 0", created, exist, all)
	}
	e.stored("customers", uint64(all), time.Minute)
	for _, when := range []string{"hot", "cold"} {
		end := e.stream(schemas.StreamDocs).LastSeq
		if created, exist := load(); created != 0 || exist != all {
			t.Errorf("%s: %d created and %d existed, expected 0 and %d", when, created, exist, all)
		}
		if now := e.stream(schemas.StreamDocs).LastSeq; now != end {
			t.Errorf("%s: DOCS went from message %d to %d", when, end, now)
		}
		if done := e.clean(e.cleaner(), cold); when == "hot" && int64(done.Stubbed) != all {
			t.Errorf("%+v, expected %d stubs", done, all)
		}
	}
	for path, n := range map[string]int{"quakes": len(quakes.Features), "repos": len(repos)} {
		if listed, _ := list(t, c, documents.Selection{Path: path}); len(listed) != n {
			t.Errorf("%d documents under %s, expected %d", len(listed), path, n)
		}
	}
	for i := 0; i < len(docs); i += 101 {
		var want bytes.Buffer
		_ = json.Compact(&want, docs[i].Body)
		if d, err := again(c.Load)(t.Context(), docs[i].ID); err != nil || string(d.Body) != want.String() {
			t.Errorf("%s: %+v, %v", docs[i].ID, d, err)
		}
	}
	e.verified("customers")
	t.Logf("%d documents", all)
}
