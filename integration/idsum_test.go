package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

const force = " SETTINGS lightweight_delete_mode = 'lightweight_update_force'"

// replaceRow puts another row in the place of one: the same but for what change says.
func (e *env) replaceRow(topic, which, change string) {
	e.t.Helper()
	e.exec("INSERT INTO %s SELECT * REPLACE (%s) FROM %[1]s WHERE %[3]s"+noMerge, e.table(topic), change, which)
	e.exec("DELETE FROM %s WHERE %s AND NOT startsWith(toString(id), '00000000')"+force, e.table(topic), which)
}

// A row whose id was replaced, the count kept, is found: where the frames tell, where
// they no longer do, and where an erasure took rows of the same shard.
func TestVerifyFindsReplacedIDs(t *testing.T) {
	t.Parallel()
	const other = "toUUID('00000000-0000-7000-8000-000000000001') AS id"
	for name, c := range map[string]struct {
		before func(e *env, s registry.Shard)
		words  string
	}{
		"frames there": {func(*env, registry.Shard) {}, "1 of the events are missing"},
		"frames purged": {func(e *env, s registry.Shard) {
			msgs := e.messages(schemas.StreamShards, s.Ref().Subject())
			for _, m := range msgs[:len(msgs)-1] {
				if err := e.shardsStream().DeleteMsg(e.t.Context(), m.Sequence); err != nil {
					e.t.Fatal(err)
				}
			}
		}, "not the same events"},
		"rows erased": {func(e *env, s registry.Shard) {
			e.erase(erasure.Request{Topic: "app", Users: []string{"u-3"}})
		}, "not the same events"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := oneLaneTopic()
			topic.Rotate = schemas.Rotation{Rows: 12}
			e := start(t, topic)
			e.router()
			e.sink()
			p := e.producer("app")
			for i := range 40 {
				if err := p.Publish(t.Context(), producer.Event{Message: fmt.Sprint(i), UserID: fmt.Sprintf("u-%d", i%10)}); err != nil {
					t.Fatal(err)
				}
			}
			e.stored("app", 40, 30*time.Second)
			one := e.closed("app", 30*time.Second)[0]
			c.before(e, one)
			rep := e.verify(40)
			for _, s := range rep.Shards("app") {
				if s.ByCount {
					t.Errorf("%s was compared by count alone", s.Name)
				}
			}
			e.replaceRow("app", fmt.Sprintf("shard = %d AND message = '5'", uint64(one.ID)), other)
			e.named(c.words)
		})
	}
}

// A time that was moved is another event too.
func TestVerifyFindsReplacedTimes(t *testing.T) {
	t.Parallel()
	e := startDozens(t)
	e.router()
	e.sink()
	e.dozens(e.producer("app"), 40)
	e.verify(40)
	e.exec("INSERT INTO %s SELECT * REPLACE (ts + 1 AS ts) FROM %[1]s WHERE message = '7'"+noMerge, e.table("app"))
	e.exec("DELETE FROM %s WHERE message = '7' AND ts = (SELECT min(ts) FROM %[1]s WHERE message = '7')"+force, e.table("app"))
	e.named("1 of the events are missing")
}
