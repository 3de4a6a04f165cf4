package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// However many lanes a topic of documents has, a document's history is what was written; and it is looked for in the
// lane of its id alone: a row under another lane's shards, which no router put there, is not read.
func TestHistoryOfAnIDIsInItsLane(t *testing.T) {
	t.Parallel()
	for _, lanes := range []int{1, 4, 16} {
		t.Run(fmt.Sprint(lanes), func(t *testing.T) {
			t.Parallel()
			topic := docsTopic()
			topic.Lanes = lanes
			e := start(t, topic)
			e.router()
			e.sink()
			c := e.documents("customers")
			const n = 9
			rows := uint64(0)
			id := func(i int) string { return fmt.Sprint("d-", i) }
			for i := range n {
				d, err := c.Create(t.Context(), documents.New{ID: id(i), Path: "p", Body: []byte(`{}`)})
				for range i % 3 {
					if err == nil {
						d, err = c.Update(t.Context(), id(i), documents.IfVersion(d.Version), []byte(`{"n":1}`))
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				rows += uint64(1 + i%3)
			}
			e.stored("customers", rows, time.Minute)
			e.whole("customers", rows)
			tp, err := e.reg.Topic(t.Context(), "customers")
			if err != nil {
				t.Fatal(err)
			}
			if lanes > 1 { // the newest version of d-0, in another lane
				other := schemas.NewShard((document.Lane(&tp, id(0)) + 1) % lanes)
				e.exec("INSERT INTO %s SELECT * REPLACE(toUInt64(%d) AS shard, toInt64(9) AS version, toInt64(999999) AS seq) FROM %[1]s WHERE doc_id = 'd-0'", e.table("customers"), uint64(other))
			}
			for i := range n {
				h, err := c.History(t.Context(), id(i))
				if err != nil || len(h) != 1+i%3 || h[len(h)-1].Version != uint64(1+i%3) {
					t.Errorf("%s: %d versions (%v), expected %d", id(i), len(h), err, 1+i%3)
				}
			}
		})
	}
}
