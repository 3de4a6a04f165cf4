package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// A refresh that the cleaner wrote after an erasure was entered has a sequence above the fence, and
// holds a version from below it. The erasure takes it too: where a removal follows, where another
// wrote a newer version since, and where both came to an end.
func TestEraseWhatWasRefreshed(t *testing.T) {
	t.Parallel()
	e, c := ownedDocs(t)
	for _, id := range []string{"last", "given", "left"} {
		if _, err := c.Create(t.Context(), documents.Draft{ID: id, Path: "p", Body: []byte(`{"owner":"u-1"}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Update(t.Context(), id, documents.Always, []byte(`{"owner":"u-7","secret":"x"}`)); err != nil {
			t.Fatal(err)
		}
	}
	e.stored("customers", 6, time.Minute)
	x := e.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "customers", Users: []string{"u-7"}})
	if err != nil {
		t.Fatal(err)
	}
	if done := e.clean(e.cleaner(), hot); done.Refreshed != 3 {
		t.Fatalf("%+v, expected three refreshes", done)
	}
	if _, err := c.Update(t.Context(), "given", documents.Always, []byte(`{"owner":"u-1","n":3}`)); err != nil {
		t.Fatal(err)
	}
	if err := c.Remove(t.Context(), "left", documents.Always); err != nil {
		t.Fatal(err)
	}
	if job, err = x.Run(t.Context(), "customers", job.ID); err != nil || job.State != ledger.Erased {
		t.Fatalf("%+v, %v", job, err)
	}
	for _, m := range e.messages(schemas.StreamDocs, "docs.customers.>") {
		if strings.Contains(string(m.Data), "u-7") {
			t.Errorf("message %d of %s is left: %q %s", m.Sequence, m.Subject, m.Header, m.Data)
		}
	}
	for _, id := range []string{"last", "given", "left"} {
		h, err := again(c.History)(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range h {
			if strings.Contains(string(d.Body), "u-7") {
				t.Errorf("the history of %s has version %d: %s", id, d.Version, d.Body)
			}
		}
	}
	// Nothing that is left is held back, so the fronts empty themselves.
	e.stored("customers", 6, time.Minute)
	if done := e.clean(e.cleaner(), cold); done.Held != 0 {
		t.Errorf("%+v", done)
	}
	e.verified("customers")
}
