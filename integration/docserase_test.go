package integration

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// Of 2,000 documents, or ALMANAC_DOCUMENTS_ERASED, 137 are a user's, half of them hot and half cold. The user is erased:
// load, list, changes, history, SQL and streams have nothing of them, a rebuild brings
// nothing back, the others are as they were, and what the user stores afterwards stays.
func TestEraseDocuments(t *testing.T) {
	t.Parallel()
	e, c := ownedDocs(t)
	const mine = 137
	all := sized("ALMANAC_DOCUMENTS_ERASED", 2000)
	write := func(from, to int) {
		t.Helper()
		parallel(t, 16, func(n int) {
			for i := from + n; i < to; i += 16 {
				owner := "u-1"
				if i < mine {
					owner = "u-7"
				}
				if _, err := c.Create(t.Context(), documents.Draft{ID: fmt.Sprint("d-", i), Path: "p", Body: fmt.Appendf(nil, `{"owner":%q,"i":%d}`, owner, i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	write(0, 68)
	e.stored("customers", 68, time.Minute)
	if done := e.clean(e.cleaner(), cold); done.Stubbed != 68 {
		t.Fatalf("%+v", done)
	}
	write(68, all)
	for i := range 20 { // half of them cold: their last version becomes hot
		if _, err := c.Update(t.Context(), fmt.Sprint("d-", 60+i), documents.Always, []byte(`{"owner":"u-7","again":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	// Given away, and taken over: of these single versions go.
	for id, owners := range map[string][]string{"given": {"u-7", "u-1"}, "taken": {"u-1", "u-7"}, "left": {"u-1", "u-7", ""}} {
		for i, owner := range owners {
			var err error
			switch body := fmt.Appendf(nil, `{"owner":%q}`, owner); {
			case owner == "":
				err = c.Remove(t.Context(), id, documents.Always)
			case i == 0:
				_, err = c.Create(t.Context(), documents.Draft{ID: id, Path: "p", Body: body})
			default:
				_, err = c.Update(t.Context(), id, documents.Always, body)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	versions := all + 20 + 2 + 2 + 3
	x := e.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "customers", Users: []string{"u-7"}})
	if err != nil {
		t.Fatal(err)
	}
	gone := func(when string) {
		t.Helper()
		docs, _ := list(t, c, documents.Selection{Path: "p"})
		if len(docs) != all-mine+1 {
			t.Errorf("%s: %d documents are listed, expected %d", when, len(docs), all-mine+1)
		}
		for i := range mine {
			if d, err := again(c.Load)(t.Context(), fmt.Sprint("d-", i)); !errors.Is(err, documents.ErrNotFound) {
				t.Errorf("%s: d-%d: %+v, %v", when, i, d, err)
			}
		}
		for _, id := range []string{"d-1", "d-70", "d-136"} {
			if h, err := again(c.History)(t.Context(), id); !errors.Is(err, documents.ErrNotFound) {
				t.Errorf("%s: the history of %s: %+v, %v", when, id, h, err)
			}
		}
		for s := (documents.Selection{}); ; {
			page, err := again(c.Changed)(t.Context(), s)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range page.Documents {
				var n int
				if _, err := fmt.Sscanf(d.ID, "d-%d", &n); err == nil && n < mine {
					t.Errorf("%s: %s changed", when, d.ID)
				}
			}
			if s.Cursor = page.Cursor; s.Cursor == "" {
				break
			}
		}
	}
	eventually(t, time.Minute, func() error { // every reader knows the ledger after a second
		if _, err := again(c.Load)(t.Context(), "d-100"); !errors.Is(err, documents.ErrNotFound) {
			return fmt.Errorf("d-100 is loaded: %w", err)
		}
		return nil
	})
	gone("entered")
	// A filter is evaluated by ClickHouse, also for what is hot.
	if _, err := c.Create(t.Context(), documents.Draft{ID: "secret", Path: "s", Body: []byte(`{"owner":"u-9"}`)}); err != nil {
		t.Fatal(err)
	}
	byFilter, err := x.Start(t.Context(), erasure.Request{Topic: "customers", Where: "path = 's' AND version = 1"})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, func() error {
		if _, err := again(c.Load)(t.Context(), "secret"); !errors.Is(err, documents.ErrNotFound) {
			return fmt.Errorf("secret is loaded: %w", err)
		}
		return nil
	})
	if d, err := again(c.Load)(t.Context(), "d-500"); err != nil || d.Version != 1 {
		t.Errorf("another is not loaded: %+v, %v", d, err)
	}
	if byFilter, err = x.Run(t.Context(), "customers", byFilter.ID); err != nil || byFilter.Rows != 1 {
		t.Fatalf("%+v, %v", byFilter, err)
	}
	if _, err := c.Create(t.Context(), documents.Draft{ID: "later", Path: "q", Body: []byte(`{"owner":"u-7"}`)}); err != nil {
		t.Fatal(err)
	}
	if job, err = x.Run(t.Context(), "customers", job.ID); err != nil || job.State != ledger.Erased || job.Rows != mine+20+4 {
		t.Fatalf("%+v, %v", job, err)
	}
	gone("erased")
	for _, id := range []string{"taken", "left"} {
		if d, err := again(c.Load)(t.Context(), id); !errors.Is(err, documents.ErrNotFound) {
			t.Errorf("%s: %+v, %v: an older state came up", id, d, err)
		}
	}
	for _, id := range []string{"given", "later", "d-500"} {
		if d, err := again(c.Load)(t.Context(), id); err != nil || len(d.Body) == 0 {
			t.Errorf("%s: %+v, %v", id, d, err)
		}
	}
	for _, m := range e.messages(schemas.StreamDocs, "docs.customers.>") {
		if m.Header.Get(schemas.HeaderUser) == "u-7" && m.Sequence <= job.Fence {
			t.Errorf("DOCS has message %d, %s", m.Sequence, m.Subject)
		}
	}
	if n := e.count("SELECT count() FROM %s WHERE user_id = 'u-7' AND seq <= %d SETTINGS apply_patch_parts = 0, apply_deleted_mask = 0", e.table("customers"), job.Fence); n != 0 {
		t.Errorf("%d rows are in parts that are read", n)
	}
	rest := uint64(versions + 1 + 2 - (mine + 20 + 4)) // two removals followed
	e.stored("customers", rest, 3*time.Minute)
	gone("removals are stored")
	e.verified("customers")
	e.clean(e.cleaner(), cold)
	gone("cold")

	nc := e.connect()
	if _, err := rebuild.Run(t.Context(), rebuild.Config{NATS: nc, Registry: e.registry(nc), DB: e.db}, "customers", true); err != nil {
		t.Fatal(err)
	}
	gone("rebuilt")
	e.verified("customers")
}
