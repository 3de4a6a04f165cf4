package checkpoint

import (
	"fmt"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"pgregory.net/rapid"
)

// Whatever order frames of a producer arrive in, each is fresh exactly once, as
// long as none lies further back than a producer keeps in flight.
func TestWindowTakesEachSequenceOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var ws Windows
		taken := map[uint64]bool{}
		sent, source := uint64(0), uint64(0)
		first := uint64(0)
		for range rapid.IntRange(1, 400).Draw(rt, "steps") {
			// A resend of anything within flight, or the next.
			lo := uint64(1)
			if sent > schemas.MaxInFlight {
				lo = sent - schemas.MaxInFlight + 1
			}
			seq := rapid.Uint64Range(lo, sent+3).Draw(rt, "seq")
			sent, source = max(sent, seq), source+1
			f := schemas.Frame{Producer: "p", Seq: seq, Rows: 1}
			got := ws.Check(f)
			switch {
			case taken[seq] && got != Repeated:
				rt.Fatalf("seq %d came before and is called %d", seq, got)
			case !taken[seq] && got != Fresh:
				rt.Fatalf("seq %d never came and is called %d (first %d)", seq, got, first)
			}
			if got == Fresh {
				ws = ws.Take(f, source)
				taken[seq] = true
			}
		}
	})
}

// A frame that is forgotten is fresh, and the others are what they were.
func TestWindowForgets(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var ws Windows
		seqs := rapid.SliceOfNDistinct(rapid.Uint64Range(1, 60), 1, 20, rapid.ID[uint64]).Draw(rt, "seqs")
		for _, s := range seqs {
			ws = ws.Take(schemas.Frame{Producer: "p", Seq: s}, s)
		}
		out := rapid.SampledFrom(seqs).Draw(rt, "forgotten")
		ws = ws.Forget(schemas.Frame{Producer: "p", Seq: out})
		for _, s := range seqs {
			if got := ws.Check(schemas.Frame{Producer: "p", Seq: s}); (got == Fresh) != (s == out) {
				rt.Fatalf("%d is %d after %d was forgotten: %+v", s, got, out, ws)
			}
		}
	})
}

func TestWindowCallsFarBehindStale(t *testing.T) {
	var ws Windows
	ws = ws.Take(schemas.Frame{Producer: "p", Seq: 100}, 1)
	for seq, want := range map[uint64]Repeat{100: Repeated, 99: Fresh, 36: Fresh, 35: Stale, 1: Stale, 101: Fresh} {
		if got := ws.Check(schemas.Frame{Producer: "p", Seq: seq}); got != want {
			t.Errorf("seq %d is %d, want %d", seq, got, want)
		}
	}
	if got := ws.Check(schemas.Frame{Producer: "q", Seq: 1}); got != Fresh {
		t.Errorf("another producer's frame is %d, want fresh", got)
	}
	if got := ws.Check(schemas.Frame{}); got != Fresh {
		t.Errorf("a frame without a producer is %d, want fresh", got)
	}
}

func TestWindowsAreBounded(t *testing.T) {
	var ws Windows
	for i := range MaxWindows + 10 {
		ws = ws.Take(schemas.Frame{Producer: fmt.Sprint(i), Seq: 1}, uint64(i+1))
	}
	if len(ws) != MaxWindows {
		t.Fatalf("%d windows, want %d", len(ws), MaxWindows)
	}
	if ws.find("0") != nil || ws.find(fmt.Sprint(MaxWindows+9)) == nil {
		t.Error("the producer that was silent longest must go, the newest stay")
	}
}
