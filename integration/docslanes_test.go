package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// However many lanes a topic of documents has (other tests have 4), histories, newest versions, lists and erasures are exact, hot and cold; and a history
// is looked for in the lane of its id alone: a row under another lane's shards, which no router put there, is not read.
func TestDocumentsAreInTheirLane(t *testing.T) {
	t.Parallel()
	for _, lanes := range []int{1, 16} {
		t.Run(fmt.Sprint(lanes), func(t *testing.T) {
			t.Parallel()
			topic := docsTopic()
			topic.Lanes, topic.Documents.UserField = lanes, "owner"
			e := start(t, topic)
			e.router()
			e.sink()
			c := e.documents("customers")
			const n = 9
			rows := uint64(0)
			id := func(i int) string { return fmt.Sprint("d-", i) }
			owner := func(i int) string { return fmt.Sprint("u-", i%3) }
			for i := range n {
				d, err := c.Create(t.Context(), documents.Draft{ID: id(i), Path: "p", Body: fmt.Appendf(nil, `{"owner":%q}`, owner(i))})
				for range i % 3 {
					if err == nil {
						d, err = c.Update(t.Context(), id(i), documents.IfVersion(d.Version), fmt.Appendf(nil, `{"owner":%q,"n":1}`, owner(i)))
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				rows += uint64(1 + i%3)
			}
			e.stored("customers", rows, time.Minute)
			e.whole("customers", rows)
			exact := func(when, erased string) {
				t.Helper()
				var want, got []string
				for i := range n {
					versions := 1 + i%3
					if owner(i) == erased {
						versions = 0
					} else {
						want = append(want, id(i))
					}
					h, err := again(c.History)(t.Context(), id(i))
					if versions == 0 {
						if len(h) != 0 && err == nil {
							t.Errorf("%s: %s has %d versions", when, id(i), len(h))
						}
						if d, err := again(c.Load)(t.Context(), id(i)); err == nil {
							t.Errorf("%s: %s is loaded: %+v", when, id(i), d)
						}
						continue
					}
					if err != nil || len(h) != versions || h[len(h)-1].Version != uint64(versions) {
						t.Errorf("%s: %s: %d versions (%v), expected %d", when, id(i), len(h), err, versions)
					}
					if d, err := again(c.Load)(t.Context(), id(i)); err != nil || d.Version != uint64(versions) {
						t.Errorf("%s: %s: %+v (%v), expected version %d", when, id(i), d, err, versions)
					}
				}
				page, err := again(c.List)(t.Context(), documents.Selection{Path: "p"})
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range page.Documents {
					got = append(got, d.ID)
				}
				slices.Sort(got)
				if !slices.Equal(got, want) {
					t.Errorf("%s: %v are listed, expected %v", when, got, want)
				}
			}
			exact("hot", "")
			if done := e.clean(e.cleaner(), cold); done.Stubbed != n {
				t.Fatalf("%+v, expected %d stubs", done, n)
			}
			exact("cold", "")
			e.erase(erasure.Request{Topic: "customers", Users: []string{"u-1"}})
			exact("erased", "u-1")
			e.verified("customers")
			tp, err := e.reg.Topic(t.Context(), "customers")
			if err != nil {
				t.Fatal(err)
			}
			if lanes > 1 { // the newest version of d-0, in another lane
				other := schemas.NewShard((document.Lane(&tp, id(0)) + 1) % lanes)
				e.exec("INSERT INTO %s SELECT * REPLACE(toUInt64(%d) AS shard, toInt64(9) AS version, toInt64(999999) AS seq) FROM %[1]s WHERE doc_id = 'd-0'", e.table("customers"), uint64(other))
				if h, err := again(c.History)(t.Context(), id(0)); err != nil || len(h) != 1 {
					t.Errorf("with a row in another lane: %d versions (%v), expected 1", len(h), err)
				}
			}
		})
	}
}
