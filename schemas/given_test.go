package schemas

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"
)

func TestParts(t *testing.T) {
	t.Parallel()
	p := Part{DigestOfRequest{1, 2, 255}, 7, 4_000_000_000}
	if got, ok := PartOf(nats.Header{HeaderPart: {p.String()}}); !ok || got != p {
		t.Errorf("%s reads back as %+v, %t", p, got, ok)
	}
	if got := p.MsgID(202611, 3); got != "k.0102ff000000000000000000.2026-11.3.7-4000000000" {
		t.Error(got)
	}
	for _, text := range []string{"", "x", "0102ff000000000000000000", "0102ff000000000000000000.7", "0102ff000000000000000000.7-7", "0102ff000000000000000000.9-7",
		"0102ff00000000000000000.1-2", "zz02ff000000000000000000.1-2", "0102ff000000000000000000.-1-2", "0102ff000000000000000000.1-4294967296"} {
		if got, ok := PartOf(nats.Header{HeaderPart: {text}}); ok {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// A part is known as long as all its events were given by other messages within GivenFor, however they were cut.
func TestGiven(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC).UnixNano()
	request := DigestOfRequest{9}
	part := func(from, to uint32, at time.Duration) GivenPart {
		return GivenPart{202611, Part{request, from, to}, now + int64(at)}
	}
	var g Given
	if g.Has(part(0, 1, 0)) {
		t.Error("an empty one knows a part")
	}
	g.Take(part(0, 100, 0))
	g.Take(part(100, 150, 1))
	g.Take(part(200, 210, 2))
	other, month := part(0, 100, 5), part(0, 100, 5)
	other.Request[3], month.Month = 1, 202612
	for name, c := range map[string]struct {
		p    GivenPart
		want bool
	}{
		"the same":             {part(0, 100, 5), true},
		"of another cut":       {part(50, 150, 5), true},
		"a part of it":         {part(7, 8, 5), true},
		"beyond":               {part(100, 151, 5), false},
		"over a gap":           {part(140, 205, 5), false},
		"the message itself":   {part(0, 100, 0), false},
		"before it":            {part(0, 100, -time.Hour), true},
		"at the end":           {part(0, 100, GivenFor-1), true},
		"too late":             {part(0, 100, GivenFor), false},
		"of another request":   {other, false},
		"of another month":     {month, false},
		"and one that follows": {part(200, 210, 3), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := g.Has(c.p); got != c.want {
				t.Errorf("%s: %t", name, got)
			}
		})
	}
	g.Take(part(140, 205, 6))
	g.Take(part(130, 210, 7)) // it was not all given before, so it was taken
	if g.Has(part(140, 205, 6)) {
		t.Error("a message that was taken is a repetition, of one that came after it")
	}
	var again Given
	if err := again.TakeEncoded(EncodeGiven([]GivenPart{part(0, 100, 0), part(100, 150, 1)})); err != nil || !again.Has(part(0, 150, 9)) || again.Len() != 2 {
		t.Errorf("read back: %+v, %v", again, err)
	}
	if again.TakeEncoded(make([]byte, 31)) == nil {
		t.Error("31 bytes were taken")
	}
}

// It keeps no more than MaxGiven and nothing older than GivenFor, and knows what it keeps.
func TestGivenBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var g Given
		at := int64(1 << 60)
		kept := map[GivenPart]bool{}
		for range rapid.IntRange(1, 3000).Draw(rt, "n") {
			at += rapid.Int64Range(0, int64(GivenFor)/100).Draw(rt, "later")
			from := rapid.Uint32Range(0, 3).Draw(rt, "from")
			p := GivenPart{202611, Part{DigestOfRequest{byte(rapid.IntRange(0, 9).Draw(rt, "request"))}, from, from + 1}, at}
			g.Take(p)
			kept[p] = true
		}
		for p := range kept {
			again := p
			again.At = at + 1
			if young := at-p.At < int64(GivenFor)-1; young && !g.Has(again) {
				rt.Fatalf("%s is forgotten after %s", p, time.Duration(at-p.At))
			}
		}
		again := GivenPart{202611, Part{DigestOfRequest{1}, 0, 1}, at + int64(GivenFor) + 1}
		if g.Has(again) {
			rt.Fatal("a part is never forgotten")
		}
		g.Take(GivenPart{202611, Part{DigestOfRequest{99}, 0, 1}, at + 2*int64(GivenFor)})
		if g.Len() != 1 || len(g.spans) != 1 {
			rt.Fatalf("%d parts of %d requests are kept", g.Len(), len(g.spans))
		}
	})
	var g Given
	for i := range MaxGiven + 10 {
		g.Take(GivenPart{202611, Part{DigestOfRequest{byte(i), byte(i >> 8), byte(i >> 16)}, 0, 1}, int64(i)})
	}
	if g.Len() != MaxGiven || len(g.spans) != MaxGiven {
		t.Error(fmt.Sprint(g.Len(), " parts of ", len(g.spans), " requests"))
	}
}
