package producer

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDropsAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Bool
		var stderr strings.Builder
		var heard []string
		l := &captureLink{answerOf: func(int, sent) (answer, bool) {
			if free.Load() {
				return answer{outcome: stored}, true
			}
			return answer{outcome: again, err: ErrNotStored}, true
		}}
		p := startOn(t, l, Config{BufferEvents: 10, Stderr: &stderr, Hooks: Hooks{OnDrop: func(cause string, n uint64) {
			heard = append(heard, fmt.Sprint(cause, " ", n))
		}}})
		p.Log(Event{Time: time.Unix(0, 0)})
		synctest.Wait() // told at once
		for range 40 {
			for range 5 {
				p.Log(Event{UserID: "a"})
			}
			time.Sleep(50 * time.Millisecond)
		}
		free.Store(true)
		time.Sleep(20 * time.Second)
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		// 2 s of drops: at once, after 1 s, after 2 s.
		if len(lines) != 3 || lines[0] != "almanac: topic app: dropped 1 events: time-zero 1" || !strings.Contains(lines[1], "buffer-full") {
			t.Errorf("stderr: %q", lines)
		}
		if len(heard) != 3 {
			t.Errorf("OnDrop heard %q", heard)
		}
		told := map[string]string{}
		for _, ev := range l.events(t) {
			if ev.Type == TypeDropped {
				told[ev.Attrs[0].Text()] = ev.Attrs[1].Text()
			}
		}
		// 201 were logged, one was refused, and beside the report of that one the
		// buffer held nine.
		if d := cmp.Diff(map[string]string{"time-zero": "1", "buffer-full": "191"}, told); d != "" {
			t.Errorf("as events (-want +got):\n%s", d)
		}
		checkSum(t, p.Stats())
	})
}

// A pipe that is not read holds up neither Log nor Close for long.
func TestStuckStderrHoldsNothing(t *testing.T) {
	r, w := io.Pipe()
	defer r.Close()
	p := startOn(t, new(instantLink), Config{Stderr: w})
	p.Log(Event{Time: time.Unix(0, 0)})
	for range 1000 {
		p.Log(Event{})
	}
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := p.Stats(); s.Stored < 1000 {
		t.Errorf("%+v", s)
	}
}

func TestUntold(t *testing.T) {
	got := untold(map[string]uint64{"b": 5, "a": 2, "c": 1}, map[string]uint64{"b": 3, "c": 1})
	want := []dropped{{"a", 2}, {"b", 2}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := dropLine("app", want); got != "almanac: topic app: dropped 4 events: a 2, b 2\n" {
		t.Errorf("%q", got)
	}
}
