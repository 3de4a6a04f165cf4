package retention

import (
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// Purging the oldest messages of each lane does not bring the rest of EVENTS into the
// server's memory.
func TestPurgeLoadsOnlyWhatGoes(t *testing.T) { // not parallel: it looks at the process's heap
	const lanes, each, size = 4, 250, 64 << 10 // 64 MB
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	js, err := jetstream.New(srv.NC())
	if err != nil {
		t.Fatal(err)
	}
	events, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: schemas.StreamEvents, Subjects: []string{schemas.SubjectsEvents}, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, size)
	for i := range each {
		for n := range lanes {
			msg := nats.NewMsg(schemas.EventsSubject("app", schemas.Month(202611), n))
			msg.Data = data
			if _, err := js.PublishMsg(t.Context(), msg); err != nil {
				t.Fatal(i, err)
			}
		}
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	// The server keeps what was written for some seconds.
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for heap() > 40<<20 {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("the heap stays at %d MiB", heap()>>20)
		}
	}
	before := heap()
	subjects, err := subjectsByLane(t.Context(), js)
	if err != nil {
		t.Fatal(err)
	}
	const upTo = lanes * each / 10
	j := Janitor{js: js, alone: true}
	for n := range lanes {
		if err := j.purgeLane(t.Context(), events, subjects[lane{"app", strconv.Itoa(n)}], upTo); err != nil {
			t.Fatal(err)
		}
	}
	if after := heap(); after > before+25<<20 {
		t.Errorf("the heap grew from %d to %d MiB", before>>20, after>>20)
	}
	info, err := events.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if s := info.State; s.FirstSeq != upTo || s.Msgs != lanes*each-upTo+1 {
		t.Errorf("%d messages from %d on are left, want those from %d", s.Msgs, s.FirstSeq, upTo)
	}
}
