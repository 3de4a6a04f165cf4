package integration

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
)

// An id that was removed, left DOCS and was used again by a writer whose clock is behind: the list of changes
// has it at the last change of its present life, before that is archived and after.
func TestChangedOfALaterLife(t *testing.T) {
	t.Parallel()
	e := start(t, docsTopic())
	stop := e.router()
	e.sink()
	c := e.documents("customers")
	create(t, c, "d-", "p", 1)
	if err := c.Remove(t.Context(), "d-0", documents.Always); err != nil {
		t.Fatal(err)
	}
	e.stored("customers", 2, time.Minute)
	if done := e.clean(e.cleaner(), cold); done.Purged != 1 {
		t.Fatalf("%+v", done)
	}
	stop()
	for id, behind := range map[string]time.Duration{"d-0": time.Hour, "other": 30 * time.Minute} {
		of := e.documents("customers", func(c *documents.Config) {
			c.Now = func() time.Time { return time.Now().Add(-behind) }
		})
		if _, err := of.Create(t.Context(), documents.Draft{ID: id, Path: "p", Body: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	changed := func(when string) {
		t.Helper()
		for _, limit := range []int{1, 10} {
			var ids []string
			for s := (documents.Selection{All: true, Limit: limit}); ; {
				page, err := again(c.Changed)(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range page.Documents {
					ids = append(ids, d.ID)
				}
				if s.Cursor = page.Cursor; s.Cursor == "" {
					break
				}
			}
			if len(ids) != 2 || ids[0] != "d-0" || ids[1] != "other" {
				t.Errorf("%s, pages of %d: changed are %q", when, limit, ids)
			}
		}
	}
	changed("before it is archived")
	e.router()
	e.stored("customers", 4, time.Minute)
	changed("archived")
}
