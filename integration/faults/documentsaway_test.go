package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// TestDocumentsThroughOutages takes ClickHouse away for ALMANAC_DOCUMENTS_AWAY times as long as documents stay hot and
// records stay at all. Nothing leaves DOCS, and writes go on; afterwards all is archived, and one stub of each document is left. A cold document
// that changes is loaded and listed by its new version at once, and once; cold again, it comes from ClickHouse.
func TestDocumentsThroughOutages(t *testing.T) {
	const hotFor, settle, docs = 4 * time.Second, 5 * time.Second, 40
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	h, reg, c := ofDocuments(ctx, t, hotFor, settle, settle-time.Second)
	body := func(version int) []byte { return fmt.Appendf(nil, `{"v":%d}`, version) }
	h.Engine.Kill()
	end := time.Now().Add(time.Duration(number("ALMANAC_DOCUMENTS_AWAY", 1)) * (hotFor + settle))
	writes, versions := 0, 0
	for version := 1; version == 1 || time.Now().Before(end); version++ {
		for i := range docs {
			if _, err := c.Put(ctx, documents.Draft{ID: fmt.Sprint("d-", i), Path: "p", Body: body(version)}); err != nil {
				t.Fatal(err)
			}
			writes++
		}
		versions = version
		if err := backoff.Sleep(ctx, 200*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	if _, err := streams.Headers(ctx, reg.JetStream(), schemas.StreamDocs, schemas.DocTopicFilter(docsTopic), 1, func(m *streams.Message) error {
		if m.Size > 0 {
			kept++
		}
		return nil
	}); err != nil || kept != writes {
		t.Errorf("%d of %d records are in DOCS while ClickHouse is away, %v", kept, writes, err)
	}
	if _, err := c.List(ctx, documents.Selection{Path: "p"}); !errors.Is(err, documents.ErrArchive) {
		t.Errorf("a list without ClickHouse: %v", err)
	}
	h.start(h.Engine)
	h.ready(h.Engine)
	stubs(ctx, t, reg, docs)
	proven(ctx, t, h, reg, docsTopic, true)

	look := func(when string, version int) {
		t.Helper()
		for i := range docs {
			want := versions
			if i == 0 {
				want = version
			}
			if d, err := c.Load(ctx, fmt.Sprint("d-", i)); err != nil || d.Version != uint64(want) || string(d.Body) != string(body(want)) {
				t.Errorf("%s: d-%d: %+v, %v; expected version %d", when, i, d, err, want)
			}
		}
		page, err := c.List(ctx, documents.Selection{Path: "p"})
		if err != nil || len(page.Documents) != docs {
			t.Fatalf("%s: %+v, %v; expected %d documents", when, page, err, docs)
		}
		seen := map[string]bool{}
		for _, d := range page.Documents {
			if want := version; seen[d.ID] || d.ID == "d-0" && string(d.Body) != string(body(want)) {
				t.Errorf("%s: listed: %+v, expected version %d", when, d, want)
			}
			seen[d.ID] = true
		}
	}
	look("cold", versions)
	if _, err := c.Update(ctx, "d-0", documents.IfVersion(uint64(versions)), body(versions+1)); err != nil {
		t.Fatal(err)
	}
	look("changed", versions+1)
	stubs(ctx, t, reg, docs)
	look("cold again", versions+1)
	proven(ctx, t, h, reg, docsTopic, true)
	t.Logf("%d writes while ClickHouse was away", writes)
}
