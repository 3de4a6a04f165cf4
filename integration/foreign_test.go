package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// A shard that no router made is named and left alone: neither its rows nor those that its
// headers speak of become the topic's, and nothing is called lost. Once it is taken out,
// everything is proven.
func TestRepairForeignShard(t *testing.T) {
	t.Parallel()
	const n, id = 20, schemas.Shard(0xf0f0)
	for name, c := range map[string]struct{ make, remove func(e *env, m schemas.Month) }{
		"frames of a client": {
			func(e *env, m schemas.Month) {
				f, payload := frameOf(e.t, oneLaneTopic(), producer.Event{Message: "foreign"})
				p := schemas.Placed{Frame: f, Pos: 5, SourceSeq: 3, ShardRows: 50, ShardBytes: 5000}
				msg := nats.NewMsg(schemas.ShardSubject("app", m, id))
				p.SetHeaders(msg.Header)
				msg.Data = payload
				if _, err := e.js().PublishMsg(e.t.Context(), msg); err != nil {
					e.t.Fatal(err)
				}
			},
			func(e *env, m schemas.Month) {
				if err := e.shardsStream().Purge(e.t.Context(), jetstream.WithPurgeSubject(schemas.ShardSubject("app", m, id))); err != nil {
					e.t.Fatal(err)
				}
			},
		},
		"rows inserted by hand": {
			func(e *env, _ schemas.Month) {
				e.exec("INSERT INTO %s SELECT * REPLACE (%d AS shard) FROM %[1]s LIMIT 7"+noMerge, e.table("app"), uint64(id))
			},
			func(e *env, m schemas.Month) {
				e.exec("ALTER TABLE %s DROP PARTITION ID '%s'", e.table("app"), schemas.PartitionID(m, id))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := start(t, oneLaneTopic())
			stopRouter, stopSink := e.router(), e.sink()
			e.say(e.producer("app"), n)
			e.stored("app", n, 30*time.Second)
			e.verify(n)
			stopRouter()
			stopSink()
			m := e.shards("app")[0].Month
			c.make(e, m)
			e.named("the registry does not know it")
			p := e.plan()
			for _, a := range p.Actions {
				t.Errorf("repair would %s %s: %s", a.Do, a.Where, a.Detail)
			}
			if !strings.Contains(strings.Join(p.Notes, "\n"), "no router made it") {
				t.Errorf("the foreign shard is not named: %v", p.Notes)
			}
			c.remove(e, m)
			e.verify(n)
		})
	}
}
