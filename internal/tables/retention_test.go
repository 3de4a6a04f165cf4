package tables

import (
	"fmt"
	"sync"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// A field of every type is cleared in one shard, on disk, by two at once; the
// other shard, ids, times, positions and counts stay. Then the shard is dropped,
// however often.
func TestClearAndDrop(t *testing.T) {
	t.Parallel()
	db, srv := open(t)
	topic := everyType()
	if err := db.DropShard(t.Context(), schemas.ShardRef{Topic: "every", Month: november, ID: 5}); err != nil {
		t.Errorf("dropping of a table that was never made: %v", err)
	}
	if err := db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	frame := func() []byte {
		b := frame.NewBuilder(&topic)
		for i := range 100 {
			e := schemas.Event{Message: "m", UserID: fmt.Sprint("u-", i), Level: "info", Attrs: []schemas.Attr{
				schemas.String("f0", "x"), schemas.String("f1", "y"), schemas.Int64("f2", 7), schemas.Float64("f3", 1.5), schemas.Bool("f4", true),
				schemas.String("f5", "2026-11-20T12:00:00Z"), schemas.String("ip", "192.0.2.1"), schemas.String("it's", "q"), schemas.String("path", "/"),
			}}
			b.Append(&e, noon.UnixNano()+int64(i), schemas.NewID(noon.UnixNano()))
		}
		_, payload := b.Encode()
		return append([]byte(nil), payload...)
	}
	for _, shard := range []schemas.Shard{5, 6} {
		for pos := range uint64(3) {
			if err := db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: november, Shard: shard, Head: pos, Frames: framesAt(t, &topic, pos+1, frame())}); err != nil {
				t.Fatal(err)
			}
		}
	}
	table := sql.QuotedTable(srv.Database, "every")
	kept := func(shard int) (s string) {
		t.Helper()
		q := fmt.Sprintf("SELECT toString((count(), max(pos), sum(cityHash64(ts, id, pos, message, attributes['path'])))) FROM %s WHERE shard = %d", table, shard)
		if err := db.Conn().QueryRow(t.Context(), q).Scan(&s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	full := func(shard int) (n uint64) {
		t.Helper()
		q := fmt.Sprintf(`SELECT countIf(user_id != '' OR level != '' OR f0 != '' OR f1 != '' OR f2 != 0 OR f3 != 0 OR f4 OR toUnixTimestamp64Nano(f5) != 0
			OR mapContains(attributes, 'ip') OR mapContains(attributes, 'it\'s')) FROM %s WHERE shard = %d SETTINGS apply_patch_parts = 0`, table, shard)
		if err := db.Conn().QueryRow(t.Context(), q).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before, other := kept(5), kept(6)
	if full(5) != 300 || full(6) != 300 {
		t.Fatalf("%d and %d rows have the fields, want 300", full(5), full(6))
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if err := db.ClearFields(t.Context(), &topic, november, 5, []string{"user_id", "level", "f0", "f1", "f2", "f3", "f4", "f5", "ip", "attributes.it's", "unknown"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if full(5) != 0 || full(6) != 300 {
		t.Errorf("%d rows of the shard and %d of the other have the fields, want 0 and 300", full(5), full(6))
	}
	if kept(5) != before || kept(6) != other {
		t.Errorf("the rest changed: %s, %s; was %s, %s", kept(5), kept(6), before, other)
	}
	if err := db.ClearFields(t.Context(), &topic, november, 5, []string{"attributes", "message"}); err != nil {
		t.Error(err)
	}
	var left uint64
	if err := db.Conn().QueryRow(t.Context(), "SELECT countIf(notEmpty(attributes) OR message != '') FROM "+table+" WHERE shard = 5").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows have attributes left (%v)", left, err)
	}
	for range 2 {
		if err := db.DropShard(t.Context(), schemas.ShardRef{Topic: "every", Month: november, ID: 5}); err != nil {
			t.Error(err)
		}
	}
	if head, rows, err := db.HeadRows(t.Context(), schemas.ShardRef{Topic: "every", Month: november, ID: 5}); err != nil || head != 0 || rows != 0 || kept(6) != other {
		t.Errorf("dropped: %d rows up to %d (%v)", rows, head, err)
	}
	var ttl uint64
	if err := db.Conn().QueryRow(t.Context(), "SELECT count() FROM system.tables WHERE database = ? AND positionCaseInsensitive(create_table_query, ' TTL ') > 0", srv.Database).Scan(&ttl); err != nil || ttl != 0 {
		t.Errorf("%d tables drop rows by themselves (%v)", ttl, err)
	}
}
