package integration

import (
	"testing"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/tables"
)

func TestZZTok(t *testing.T) {
	topic, _ := oneLane("app", 0).Declared()
	e := start(t, topic)
	if err := e.db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	var frames [][]byte
	for i := range 5 {
		_, p := frame(t, topic, producer.Event{Time: feb(i, 10), Message: "m"}, producer.Event{Time: feb(i, 10), Message: "n"})
		frames = append(frames, p)
	}
	ins := func(shard schemas.Shard, head, last uint64, fr [][]byte) {
		err := e.db.Insert(t.Context(), &tables.Insert{Topic: &topic, Schema: 1, Month: 202602, Shard: shard, Head: head, Last: last, Frames: fr})
		h, _ := e.db.Head(t.Context(), "app", 202602, shard)
		t.Logf("shard %d head %d last %d frames %d: %v; head now %d rows %d", shard, head, last, len(fr), err, h, e.count("SELECT count() FROM %s WHERE shard=%d", e.table("app"), uint64(shard)))
	}
	// sequential, assertion bypassed by deleting: use head assertion trick: same token, pos not above head
	ins(1, 0, 2, frames[:2])
	// same token "app:..1:0:0" but the assertion would refuse; pretend head is 0 by lightweight: insert with Last 0
	ins(2, 0, 0, frames[:2]) // pos 0: the head stays 0
	ins(2, 0, 3, frames[:3]) // other rows, same token
	ins(2, 0, 3, frames[:3])
	for _, q := range []string{"SELECT version()", "SELECT toString(value) FROM system.settings WHERE name='insert_deduplication_version'"} {
		var s string
		_ = e.db.Conn().QueryRow(t.Context(), q).Scan(&s)
		t.Log(q, s)
	}
}
