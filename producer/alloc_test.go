package producer

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestLogAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	p := startOn(t, new(instantLink), Config{Policy: Block})
	defer p.Close(t.Context())
	at := time.Now()
	i := 0
	one := func() {
		i++
		p.Log(Event{
			Time: at, Level: "info", Type: "login", UserID: users[i%len(users)], Message: "user logged in",
			Attrs: []Attr{String("ip", "10.0.0.1"), Int64("n", int64(i)), Float64("duration_ms", 1.5), Bool("ok", true), Time("seen", at)},
		})
	}
	for range 50_000 {
		one() // until buffers and free lists have grown
	}
	if n := testing.AllocsPerRun(50_000, one); n != 0 {
		t.Errorf("%v allocations for an event of five attributes", n)
	}
}

// After Close no goroutine of the producer is left: synctest fails the test when
// one is.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startOn(t, new(instantLink), Config{})
		p.Log(Event{})
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
		p = startOn(t, new(silentLink), Config{})
		p.Log(Event{})
		if err := closeNow(p); err == nil {
			t.Error("Close lost an event without a word")
		}
	})
}
