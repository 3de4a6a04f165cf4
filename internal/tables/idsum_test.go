package tables

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// What a frame's events sum up to in Go is what ClickHouse makes of their rows.
func TestIDSumIsClickHouses(t *testing.T) {
	t.Parallel()
	db, _, topic := openWith(t, schemas.NewTopic("app"))
	var sum uint64
	var frames [][]byte
	var r frame.Reader
	for i, rows := range []int{2000, 1, 517} {
		frames = append(frames, frameOf(t, &topic, rows))
		if err := r.Open(frames[i], &topic, 1); err != nil {
			t.Fatal(err)
		}
		sum += r.IDSum()
	}
	if err := db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: november, Shard: 5, Frames: framesAt(t, &topic, 1, frames...)}); err != nil {
		t.Fatal(err)
	}
	var got uint64
	if err := db.Conn().QueryRow(t.Context(), "SELECT "+schemas.IDSumSQL+" FROM "+sql.QuotedTable(db.Database, "app")).Scan(&got); err != nil {
		t.Fatal(err)
	}
	if got != sum {
		t.Errorf("ClickHouse sums up to %x, the frames to %x", got, sum)
	}
}
