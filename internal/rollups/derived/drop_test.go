package derived

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

const november = schemas.Month(202611)

// frameAt is a frame of a topic at a position.
func frameAt(t *testing.T, topic *schemas.Topic, pos uint64, rows int) tables.Frame {
	t.Helper()
	at := november.Start()
	b := frame.NewBuilder(topic)
	for i := range rows {
		e := schemas.Event{Message: "m", UserID: "u", Attrs: []schemas.Attr{schemas.Int64("n", int64(i)), schemas.Float64("ms", 1.5)}}
		b.Append(&e, at+int64(i), schemas.NewID(at))
	}
	_, payload := b.Encode()
	return tables.Frame{Pos: pos, Rows: rows, Payload: bytes.Clone(payload)}
}

// A position that was asserted before what it says was dropped, and is stored after that, does not
// stay: it would say that marks, or series, are there.
func TestLatePosition(t *testing.T) {
	t.Parallel()
	for _, kind := range []schemas.Kind{kinds.Meter, kinds.Metric} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
			opened, err := tables.Open(srv.HTTPDSN())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = opened.Close() })
			db := Of(opened)
			topic := schemas.NewTopicOf(kind, "things")
			ref := schemas.ShardRef{Topic: topic.Name, Month: november, ID: 5}
			err = db.Ensure(t.Context(), &topic)
			if err == nil {
				err = db.Insert(t.Context(), &tables.Insert{Topic: &topic, Schema: 1, Month: ref.Month, Shard: ref.ID, Frames: []tables.Frame{frameAt(t, &topic, 3, 20)}})
			}
			if err == nil {
				err = db.ExamineRepeats(t.Context(), &topic, ref, 0, 0, 3)
			}
			if err == nil && topic.HasSeries() {
				err = db.FillSeries(t.Context(), &topic, ref, 0, 0, 3)
			}
			if err != nil {
				t.Fatal(err)
			}
			d, err := db.State(t.Context(), &topic)
			if err != nil || d.Shards[ref].Examined != 3 {
				t.Fatalf("%+v, %v", d, err)
			}
			// Between its assertion and its end there is time.
			late := sql.MarkExamined(&topic, db.Database, ref, d.Shards[ref].Epoch, 3, 20, tables.TextHeadMoved) + " AND sleep(2) = 0"
			if topic.HasSeries() {
				late = sql.FillSeries(&topic, db.Database, ref, 3, 3, 4, tables.TextHeadMoved) + " AND sleep(2) = 0"
			}
			stored := make(chan error, 1)
			go func() {
				stored <- db.derive(t.Context(), &topic, ref, "examine:late", late, map[string]string{"insert_deduplicate": "0"})
			}()
			embeddedtest.Eventually(t, time.Minute, func() error {
				var n uint64
				err := db.Conn().QueryRow(t.Context(), "SELECT count() FROM system.processes WHERE query_id = '"+derivedPrefix(db.Database, topic.Name)+"examine:late'").Scan(&n)
				if err == nil && n == 0 {
					err = fmt.Errorf("the statement does not run yet")
				}
				return err
			})
			if err := db.dropAllOf(t.Context(), topic.Name, []schemas.ShardRef{ref}, nil, func(schemas.ShardRef) bool { return false }); err != nil {
				t.Fatal(err)
			}
			if err := <-stored; err != nil {
				t.Fatal(err)
			}
			if d, err = db.State(t.Context(), &topic); err != nil || d.Shards[ref].Examined != 0 || d.Shards[ref].Series != 0 {
				t.Errorf("after the drop: %+v, %v", d.Shards[ref], err)
			}
		})
	}
}

func TestMain(m *testing.M) { embeddedtest.Main(m) }
