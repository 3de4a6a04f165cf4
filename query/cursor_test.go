package query

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

func TestCursor(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		ns := rapid.Int64Range(1, 1<<62)
		c := cursor{
			at:  position{ts: ns.Draw(rt, "ts"), edge: rapid.Bool().Draw(rt, "edge")},
			asc: rapid.Bool().Draw(rt, "asc"), back: rapid.Bool().Draw(rt, "back"), done: rapid.Bool().Draw(rt, "done"), from: ns.Draw(rt, "from"), to: ns.Draw(rt, "to"), now: ns.Draw(rt, "now"),
			topic: digest4(rapid.String().Draw(rt, "topic")), where: digest4(rapid.String().Draw(rt, "where")),
		}
		copy(c.at.id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "id"))
		s := c.encode()
		if got, err := decodeCursor(s); err != nil || got != c {
			rt.Fatalf("%+v reads back as %+v, %v", c, got, err)
		}
		// Any one character changed is found out.
		i := rapid.IntRange(0, len(s)-1).Draw(rt, "i")
		b := []byte(s)
		if b[i] = 'A'; s[i] == 'A' {
			b[i] = 'B'
		}
		if _, err := decodeCursor(string(b)); !errors.Is(err, ErrCursor) {
			rt.Fatalf("%s changed to %s and read: %v", s, b, err)
		}
	})
	good := cursor{at: position{ts: 7}, topic: digest4("app"), where: digest4("a"), from: 1, to: 9}
	for _, s := range []string{"x", "", "!!!!", good.encode() + "A"} {
		if _, err := decodeCursor(s); !errors.Is(err, ErrCursor) {
			t.Errorf("%q: %v", s, err)
		}
	}
	if err := good.continues("app", "a", false); err != nil {
		t.Error(err)
	}
	for says, err := range map[string]error{
		"of another topic":    good.continues("auth", "a", false),
		"with another filter": good.continues("app", "b", false),
		"in the other order":  good.continues("app", "a", true),
	} {
		if !errors.Is(err, ErrCursor) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	// The range is the cursor's; another is refused.
	for _, req := range []Request{{}, {From: time.Unix(0, 1)}, {To: time.Unix(0, 10)}, {From: time.Unix(0, 2)}, {To: time.Unix(0, 8)}} {
		p := &plan{}
		if err := p.setRange(req.From, req.To); err != nil {
			t.Fatal(err)
		}
		err := p.resume(good, req)
		if bad := req.From.Equal(time.Unix(0, 2)) || req.To.Equal(time.Unix(0, 8)); bad != errors.Is(err, ErrCursor) {
			t.Errorf("%v: %v", req, err)
		}
		if err == nil && (p.from != 1 || p.to != 9 || p.after.ts != 7) {
			t.Errorf("%v goes on as %+v", req, p)
		}
	}
}

// Positions are in the order of time, then of ids as their texts are.
func TestPositionOrder(t *testing.T) {
	id := func(s string) schemas.ID {
		v, err := schemas.ParseID(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a := position{ts: 1, id: id("00000000-0000-0001-0000-000000000002")}
	b := position{ts: 1, id: id("00000000-0000-0002-0000-000000000001")}
	if a.compare(b) >= 0 || b.compare(a) <= 0 || a.compare(a) != 0 {
		t.Error("the first half must decide first")
	}
	if (position{ts: 2}).compare(a) <= 0 {
		t.Error("time must decide before ids")
	}
}

// Merging keeps one row an id, prefers the stored one, and keeps one more than
// the limit.
func TestMerge(t *testing.T) {
	r := func(ts int64, n byte, json string) row { return row{position{ts: ts, id: schemas.ID{n}}, []byte(json)} }
	p := &plan{limit: 2}
	got := merge([]row{r(3, 1, "stored"), r(1, 1, "old")}, []row{r(3, 1, "fresh"), r(2, 2, "mid"), r(0, 9, "oldest")}, p)
	if len(got) != 3 || string(got[0].json) != "stored" || string(got[1].json) != "mid" || string(got[2].json) != "old" {
		t.Errorf("got %v", got)
	}
	p.asc = true
	if got = merge(nil, []row{r(3, 1, "c"), r(1, 1, "a"), r(2, 2, "b"), r(9, 9, "d")}, p); len(got) != 3 || string(got[0].json) != "a" {
		t.Errorf("ascending: %v", got)
	}
	if got := before([]row{r(1, 1, ""), r(2, 1, ""), r(3, 1, "")}, 2, p); len(got) != 1 || got[0].ts != 1 {
		t.Errorf("before 2 ascending: %v", got)
	}
}
