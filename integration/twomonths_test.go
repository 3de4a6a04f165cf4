package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// One lane holds two months, and the sink of one is behind when a stream loses its end.
// A repair that has to decide by what is stored passes over the messages that ClickHouse
// has, and over none between them: those are routed again.
func TestRepairTwoMonths(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		streams []string // that lose their ends
		noFrame bool     // SHARDS lost the frames below its end too
		rotate  uint64
		stored  int // of both months before the sink fell behind
	}{
		{name: "SHARDS, through shards that were left", streams: []string{schemas.StreamShards}, rotate: 4, stored: 6},
		{name: "EVENTS, and the frames are gone", streams: []string{schemas.StreamEvents}, noFrame: true, stored: 4},
		{name: "EVENTS and SHARDS", streams: []string{schemas.StreamEvents, schemas.StreamShards}, stored: 4},
		{name: "EVENTS and SHARDS, through shards that were left", streams: []string{schemas.StreamEvents, schemas.StreamShards}, rotate: 4, stored: 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			topic := oneLaneTopic()
			topic.Rotate.Rows = c.rotate
			d := startOnDisk(t, topic)
			stopRouter, stopSink := d.router(), d.sink()
			said := map[string]bool{}
			alternate := func(from, to int, mark string) {
				for i := from; i < to; i++ {
					m := fmt.Sprint(mark, i)
					d.publish(schemas.EventsSubject("app", slow+schemas.Month(i%2), 0), fmt.Sprintf(`{"ts":"2026-%02d-10T00:00:00Z","message":%q}`, 9+i%2, m))
					said[m] = true
				}
			}
			alternate(0, c.stored, "before ")
			d.stored("app", uint64(c.stored), 30*time.Second)
			stopSink()
			alternate(c.stored, 30, "before ")
			d.routed("app", 30)
			d.storeMonth(slow + 1)
			stopRouter() // which keeps a copy of the checkpoint
			if c.noFrame {
				if err := d.shardsStream().Purge(t.Context(), jetstream.WithPurgeSubject(schemas.ShardsFilter("app")), jetstream.WithPurgeKeep(1)); err != nil {
					t.Fatal(err)
				}
			}
			for _, stream := range c.streams {
				d.cut(stream)
			}
			held := d.held()
			alternate(30, 40, "since ")
			for i := 30; i < 40; i++ {
				held[fmt.Sprint("since ", i)] = true
			}
			d.plan()
			d.killed()
			d.router()
			d.sink()
			eventually(t, time.Minute, func() error {
				if err := d.repairer().Apply(t.Context(), d.plan(), func(*repair.Action, error) {}); err != nil {
					return err // a router may be faster: it is run again
				}
				stored := d.messagesStored()
				for m := range held {
					if stored[m] == 0 {
						rep, _ := d.proof("")
						return fmt.Errorf("%q could be read after the damage and is not stored: %+v", m, rep)
					}
				}
				return nil
			})
			rep, err := d.proof("")
			if err != nil || rep.Pending != 0 {
				t.Errorf("%+v, %v", rep, err)
			}
			stored := d.messagesStored()
			lost := uint64(len(said) - len(stored))
			if rep.OK() != (lost == 0) || rep.Missing != lost || rep.Doubled != 0 {
				t.Errorf("%d events are lost: %+v\n%s", lost, rep.Totals, strings.Join(rep.Problems, "\n"))
			}
			for m, n := range stored {
				if n != 1 || !said[m] {
					t.Errorf("%q is stored %d times", m, n)
				}
			}
			if p := d.plan(); len(p.Actions) > 0 && (!does(p, repair.Lost) || p.Todo() > 0) {
				t.Errorf("a plan is left: %+v", p.Actions)
			}
		})
	}
}

// slow is the month whose sink is behind; the next one's is not.
const slow = schemas.Month(202609)

// storeMonth does the sink's work for one month alone.
func (e *env) storeMonth(m schemas.Month) {
	e.t.Helper()
	topic, err := e.reg.Topic(e.t.Context(), "app")
	if err != nil {
		e.t.Fatal(err)
	}
	for _, s := range e.shards("app") {
		if s.Month != m {
			continue
		}
		head, err := e.db.Head(e.t.Context(), s.Ref())
		if err != nil {
			e.t.Fatal(err)
		}
		for _, msg := range e.messages(schemas.StreamShards, schemas.ShardSubject("app", m, s.ID)) {
			p, err := schemas.ParsePlaced(msg.Header)
			if err == nil && p.Pos > head {
				err = e.db.Insert(e.t.Context(), &tables.Insert{Topic: &topic, Schema: p.Schema, Month: m, Shard: s.ID, Head: head, Frames: []tables.Frame{{Pos: p.Pos, Rows: p.Rows, Payload: msg.Data}}})
				head = p.Pos
			}
			if err != nil {
				e.t.Fatal(err)
			}
		}
	}
}

// messagesStored says how often each message is in the table.
func (e *env) messagesStored() map[string]int {
	e.t.Helper()
	out := map[string]int{}
	rows, err := e.hand.Conn().Query(e.t.Context(), "SELECT message, count() FROM "+e.table("app")+" GROUP BY message")
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var m string
		var n uint64
		if err := rows.Scan(&m, &n); err != nil {
			e.t.Fatal(err)
		}
		out[m] = int(n)
	}
	if err := rows.Err(); err != nil {
		e.t.Fatal(err)
	}
	return out
}

// held are the messages that the table or a stream still has.
func (e *env) held() map[string]bool {
	e.t.Helper()
	out := map[string]bool{}
	for m := range e.messagesStored() {
		out[m] = true
	}
	topic, err := e.reg.Topic(e.t.Context(), "app")
	if err != nil {
		e.t.Fatal(err)
	}
	for _, m := range e.messages(schemas.StreamEvents, schemas.SubjectsEvents) {
		ev, err := rawjson.Parse(m.Data)
		if err != nil {
			e.t.Fatal(err)
		}
		out[string(ev.Message)] = true
	}
	var reader frame.Reader
	for _, m := range e.messages(schemas.StreamShards, schemas.ShardsFilter("app")) {
		f, err := schemas.ParseFrame(m.Header)
		if err == nil {
			err = reader.Open(m.Data, &topic, f.Schema)
		}
		if err != nil {
			e.t.Fatal(err)
		}
		for i := range reader.Rows() {
			out[string(reader.Event(i).Message)] = true
		}
	}
	return out
}
