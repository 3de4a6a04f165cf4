package query

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

func newestStream(t *testing.T) (*Reader, jetstream.Stream) {
	t.Helper()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	js, err := jetstream.New(srv.NC())
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: schemas.StreamEvents, Subjects: []string{"events.>"}, AllowDirect: true})
	if err != nil {
		t.Fatal(err)
	}
	return &Reader{js: js, dir: newDirectory(srv.NC())}, s
}

// Gets bring what a topic has from a sequence on, each message once and in order,
// whatever is between and whatever is gone, and say when they did not come to the end.
func TestReadNewest(t *testing.T) {
	t.Parallel()
	r, s := newestStream(t)
	at := place{schemas.StreamEvents, "events.app.>"}
	var want []uint64
	add := func(subject string, n int) {
		for range n {
			ack, err := r.js.PublishMsg(t.Context(), &nats.Msg{Subject: subject, Header: nats.Header{"K": {"v"}}, Data: []byte(subject)})
			if err != nil {
				t.Fatal(err)
			}
			if subject == "events.app.2026-11.0" {
				want = append(want, ack.Sequence)
			}
		}
	}
	read := func(from uint64) (got []uint64, next uint64, more bool) {
		t.Helper()
		next, more, err := readNewest(t.Context(), r, at, from, func(m *message) error {
			if m.subject != "events.app.2026-11.0" || m.bytes != len(m.subject) || string(m.whole.Data) != m.subject || m.header["K"][0] != "v" {
				t.Errorf("message %d came as %+v", m.seq, m)
			}
			got = append(got, m.seq)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return got, next, more
	}
	if got, next, more := read(1); len(got) > 0 || next != 1 || more {
		t.Errorf("an empty stream gives %v, and goes on at %d, more %v", got, next, more)
	}
	add("events.app.2026-11.0", 3)
	add("events.other.2026-11.0", 5)
	add("events.app.2026-11.0", 2)
	add("events.other.2026-11.0", 70)
	add("events.app.2026-11.0", 1)
	add("events.other.2026-11.0", 1)
	for _, seq := range []uint64{2, 10, 40} {
		if err := s.DeleteMsg(t.Context(), seq); err != nil {
			t.Fatal(err)
		}
	}
	want = slices.DeleteFunc(want, func(seq uint64) bool { return seq == 2 || seq == 10 })
	for from := uint64(1); from <= 83; from++ {
		got, next, more := read(from)
		i, _ := slices.BinarySearch(want, from)
		if !slices.Equal(got, want[i:]) || more || next < from || len(got) > 0 && next != got[len(got)-1]+1 {
			t.Errorf("from %d on: %v, going on at %d, more %v; want %v", from, got, next, more, want[i:])
		}
	}
	add("events.app.2026-11.0", getsAtOnce*getRounds)
	got, next, more := read(83)
	if len(got) != getsAtOnce*getRounds || !more || next != got[len(got)-1]+1 {
		t.Errorf("%d messages came, going on at %d, more %v", len(got), next, more)
	}
	if got, _, more := read(next); len(got) > 0 || more {
		t.Errorf("behind the last: %v, more %v", got, more)
	}
}

// What was acknowledged before a reading began is found by it, while others publish.
func TestReadNewestWhileOthersPublish(t *testing.T) {
	t.Parallel()
	r, _ := newestStream(t)
	at := place{schemas.StreamEvents, "events.app.>"}
	var (
		mu    sync.Mutex
		acked uint64
		wg    sync.WaitGroup
	)
	ctx, stop := context.WithCancel(t.Context())
	for i := range 4 {
		subject := "events.app.2026-11.0"
		if i == 3 {
			subject = "events.other.2026-11.0"
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				ack, err := r.js.Publish(ctx, subject, nil)
				if err != nil {
					return
				}
				if i != 3 {
					mu.Lock()
					acked = max(acked, ack.Sequence)
					mu.Unlock()
				}
			}
		})
	}
	next, got := uint64(1), []uint64(nil)
	for range 50 {
		mu.Lock()
		before := acked
		mu.Unlock()
		var more bool
		var err error
		next, more, err = readNewest(t.Context(), r, at, next, func(m *message) error { got = append(got, m.seq); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if n := len(got); !more && before > 0 && (n == 0 || got[n-1] < before) {
			t.Fatalf("message %d was acknowledged before, and was not found", before)
		}
	}
	stop()
	wg.Wait()
	var want []uint64
	err := readOn(t.Context(), r, at, 1, 1<<20, 1<<30, func(m *message) error { want = append(want, m.seq); return nil })
	if err != nil || len(want) < len(got) || !slices.Equal(got, want[:len(got)]) {
		t.Errorf("%d messages came, which are not the first of %d: %v", len(got), len(want), err)
	}
}

// A server that does not answer gets is asked by direct get, for a while.
func TestGetsRefused(t *testing.T) {
	t.Parallel()
	r, _ := newestStream(t)
	_, _, err := readNewest(t.Context(), r, place{"NONE", "events.app.>"}, 1, func(*message) error { return nil })
	if !errors.Is(err, errNoGets) {
		t.Errorf("a stream that is not there: %v", err)
	}
}
