package integration

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// One producer sent more frames of one month, behind what SHARDS lost of another, than a
// window holds. ClickHouse has them and lacks the others: these are routed again, and none
// is called too far behind; what comes twice since is still known.
func TestRepairFarBehindItsProducer(t *testing.T) {
	t.Parallel()
	topic := oneLaneTopic()
	topic.Rotate.Rows = 20
	d := startOnDisk(t, topic)
	stopRouter, stopSink := d.router(), d.sink()
	seq := 0
	send := func(m schemas.Month, n int) {
		for range n {
			seq++
			d.send(&topic, m, seq)
		}
	}
	for range 4 {
		send(slow, 1)
		send(slow+1, 1)
	}
	d.stored("app", 8, 30*time.Second)
	stopSink()
	const behind = 2*schemas.MaxInFlight + 20
	send(slow, 100)
	send(slow+1, behind)
	const all = 8 + 100 + behind
	d.routed("app", all)
	d.storeMonth(slow + 1)
	stopRouter()
	d.cut(schemas.StreamShards)
	d.router()
	d.sink()
	eventually(t, time.Minute, func() error {
		if err := d.repairer().Apply(t.Context(), d.plan(), func(*repair.Action, error) {}); err != nil {
			return err // a router may be faster: it is run again
		}
		rep, err := d.proof("")
		if err != nil {
			return err
		}
		if !rep.OK() || rep.Stored != all || rep.Pending != 0 {
			return fmt.Errorf("%+v", rep)
		}
		return nil
	})
	if letters := d.lettersNow("app"); len(letters) > 0 {
		t.Errorf("%d dead letters, the first: %+v", len(letters), letters[0])
	}
	for again := all - 30; again <= all; again++ { // as after the duplicate window
		d.send(&topic, slow+1, again)
	}
	seq = all
	send(slow, 1)
	d.stored("app", all+1, 30*time.Second)
	for m, n := range d.messagesStored() {
		if n != 1 {
			t.Errorf("%q is stored %d times", m, n)
		}
	}
}

// send publishes a frame of one event, the nth of its producer, without the id by which NATS
// would know it.
func (e *env) send(topic *schemas.Topic, m schemas.Month, n int) {
	e.t.Helper()
	b := frame.NewBuilder(topic)
	at := time.Unix(0, m.Start()).UTC().Add(time.Duration(n) * time.Minute)
	ev := schemas.Event{Time: at, Message: fmt.Sprint(n)}
	b.Append(&ev, at.UnixNano(), schemas.DerivedID(at.UnixNano(), uint64(n), 0))
	f, payload := b.Encode()
	f.Producer, f.Seq = "p", uint64(n)
	var headers []string
	h := map[string][]string{}
	f.SetHeaders(h)
	for k, v := range h {
		headers = append(headers, k, v[0])
	}
	e.publish(schemas.EventsSubject(topic.Name, m, 0), string(payload), headers...)
}
