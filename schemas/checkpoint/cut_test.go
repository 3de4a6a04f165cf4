package checkpoint

import (
	"slices"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"pgregory.net/rapid"
)

func TestMisfit(t *testing.T) {
	t.Parallel()
	cp := Checkpoint{Source: 10, Digest: "d", Stored: 100}
	unread := cp
	unread.Source, unread.At = 14, 10
	for name, c := range map[string]struct {
		cp           Checkpoint
		at           SourceAt
		misfit, gave bool
	}{
		"never routed":                     {Checkpoint{}, SourceAt{LastSeq: 5}, false, false},
		"its message":                      {cp, SourceAt{LastSeq: 12, Found: true, Stored: 100, Digest: "d"}, false, false},
		"EVENTS ends below":                {cp, SourceAt{LastSeq: 9}, true, true},
		"another message":                  {cp, SourceAt{LastSeq: 12, Found: true, Stored: 200, Digest: "e"}, true, true},
		"the same bytes, stored later":     {cp, SourceAt{LastSeq: 12, Found: true, Stored: 200, Digest: "d"}, true, true},
		"gone":                             {cp, SourceAt{LastSeq: 12}, true, false},
		"taken out":                        {Checkpoint{Source: 10}, SourceAt{LastSeq: 12}, false, false},
		"of before times were kept":        {Checkpoint{Source: 10, Digest: "d"}, SourceAt{LastSeq: 12, Found: true, Stored: 7, Digest: "d"}, false, false},
		"unread above, still so":           {unread, SourceAt{LastSeq: 20, Found: true, Stored: 100, Digest: "d"}, false, false},
		"unread above, can be read now":    {unread, SourceAt{LastSeq: 20, Found: true, Stored: 100, Digest: "d", Between: true}, true, false},
		"unread above, EVENTS ends before": {unread, SourceAt{LastSeq: 12}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.cp.Misfit(c.at); (got != "") != c.misfit {
				t.Errorf("%s: %q", name, got)
			}
			if got := c.cp.GivenAgain(c.at, nil); got != c.gave {
				t.Errorf("%s: given again: %t", name, got)
			}
		})
	}
	if !cp.GivenAgain(SourceAt{LastSeq: 12}, []EventsMessage{{Seq: 8, Stored: 101}}) {
		t.Error("a message below the checkpoint that is younger proves nothing")
	}
}

// Whatever EVENTS held, wherever it is cut, and whatever is accepted since: a lane
// goes on after its last message that was routed and stayed, doubts nothing while
// clocks run forward, and names exactly what had been accepted and not routed, also where the
// purge of an erasure took traces, and where messages left none at all.
func TestResume(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type message struct {
			EventsMessage
			lane  int
			quiet bool // leaves no trace
		}
		const lanes = 3
		repeats := rapid.Bool().Draw(t, "repeats")
		var stream []message
		now := int64(1000)
		accept := func(n int) {
			for range n {
				now++
				m := message{EventsMessage{Seq: uint64(len(stream)) + 1, Stored: now}, rapid.IntRange(0, lanes-1).Draw(t, "lane"), repeats && rapid.IntRange(0, 2).Draw(t, "quiet") == 0}
				m.Blank = m.quiet // how Resume knows it does not matter here
				if rapid.Bool().Draw(t, "frame") {
					m.Frame = &schemas.Frame{Producer: "p", Seq: uint64(now)}
				}
				stream = append(stream, m)
			}
		}
		accept(rapid.IntRange(1, 40).Draw(t, "before"))
		var cps [lanes]Checkpoint
		traces := Traces{}
		routed, purged := map[uint64]bool{}, map[uint64]bool{}
		purges := rapid.Bool().Draw(t, "an erasure purged")
		var taken []Silent // what its erasure records say
		for lane := range lanes {
			upTo := rapid.IntRange(0, len(stream)).Draw(t, "routed")
			var before bool
			for i, m := range stream[:upTo] {
				if m.lane != lane {
					continue
				}
				cps[lane].Source, cps[lane].Stored, cps[lane].Digest = m.Seq, m.Stored, "d"
				if m.quiet {
					routed[m.Seq] = true
					cps[lane].PassSilent(Silent{Seq: m.Seq, Stored: m.Stored})
					continue
				}
				routed[m.Seq] = true
				last := !slices.ContainsFunc(stream[i+1:upTo], func(m message) bool { return m.lane == lane && !m.quiet })
				if purges && before && !last && rapid.IntRange(0, 2).Draw(t, "purged") == 0 { // between two that stay
					purged[m.Seq] = rapid.Bool().Draw(t, "from EVENTS too")
					taken = append(taken, Silent{Seq: m.Seq, Stored: m.Stored})
					continue
				}
				before = true
				traces.Add(Trace{Seq: m.Seq, Stored: m.Stored, At: m.Stored})
			}
		}
		for _, cp := range cps {
			taken = append(taken, cp.Silent...)
		}
		for _, m := range taken {
			traces.Add(Trace{Seq: m.Seq, Stored: m.Stored, At: m.Stored})
		}
		old := slices.Clone(stream)
		stream = stream[:rapid.IntRange(0, len(stream)-1).Draw(t, "cut")]
		left := len(stream)
		accept(rapid.IntRange(0, 40).Draw(t, "since"))
		for lane, cp := range cps {
			if cp.Source <= uint64(left) {
				continue // fits
			}
			var own, present []EventsMessage
			want := uint64(0)
			for i, m := range stream {
				if i < left && purged[m.Seq] {
					continue
				}
				if present = append(present, m.EventsMessage); m.lane != lane {
					continue
				}
				if own = append(own, m.EventsMessage); i < left {
					want = m.Seq
				}
			}
			after, doubt := cp.Resume(own, traces)
			if after != want || len(doubt) > 0 {
				t.Fatalf("lane %d goes on after %d, doubts %d; want %d", lane, after, len(doubt), want)
			}
			lost := uint64(0)
			for _, m := range old[left:cp.Source] {
				if !routed[m.Seq] {
					lost++
				}
			}
			c := cp.CutOf(present, traces, 0, now)
			switch {
			case left == 0, c.After == 0: // nothing tells how far back the cut went
			case c.Messages != lost || !purged[uint64(left)] && c.After != uint64(left):
				t.Fatalf("cut behind %d: %+v, want %d lost behind %d, %v were purged", left, c, lost, left, purged)
			}
			next := cp.Recut(after, "d", 1, Cut{})
			if next.Behind(cp.Era, cp.Source) || !next.Behind(next.Era, after+1) {
				t.Fatal("a frame of the era before is taken for one from above the checkpoint")
			}
		}
	})
}
