package query

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

func TestCursor(t *testing.T) {
	req := Request{Topic: "app", Where: "user_id = 'u'", From: time.Unix(5, 0)}
	key := newCursorKey(req)
	rapid.Check(t, func(rt *rapid.T) {
		p := position{ts: rapid.Int64Range(1, 1<<62).Draw(rt, "ts"), edge: rapid.Bool().Draw(rt, "edge")}
		copy(p.id[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "id"))
		s := key.encode(p)
		if got, err := key.decode(s); err != nil || got != p {
			rt.Fatalf("%+v reads back as %+v, %v", p, got, err)
		}
		// Any one character changed is found out.
		i := rapid.IntRange(0, len(s)-1).Draw(rt, "i")
		b := []byte(s)
		if b[i] = 'A'; s[i] == 'A' {
			b[i] = 'B'
		}
		if _, err := key.decode(string(b)); !errors.Is(err, ErrCursor) {
			rt.Fatalf("%s changed to %s and read: %v", s, b, err)
		}
	})
	s := key.encode(position{ts: 7})
	for name, other := range map[string]Request{
		"topic": {Topic: "auth", Where: req.Where, From: req.From},
		"where": {Topic: "app", Where: "user_id = 'v'", From: req.From},
		"from":  {Topic: "app", Where: req.Where},
		"order": {Topic: "app", Where: req.Where, From: req.From, Ascending: true},
	} {
		if _, err := newCursorKey(other).decode(s); !errors.Is(err, ErrCursor) {
			t.Errorf("a cursor with another %s: %v", name, err)
		}
	}
	for _, s := range []string{"x", "", "!!!!", s + "A"} {
		if _, err := key.decode(s); !errors.Is(err, ErrCursor) {
			t.Errorf("%q: %v", s, err)
		}
	}
}

// Go orders ids as ClickHouse does: by the second half first.
func TestPositionOrder(t *testing.T) {
	id := func(s string) schemas.ID {
		v, err := schemas.ParseID(s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	a := position{ts: 1, id: id("00000000-0000-0002-0000-000000000001")}
	b := position{ts: 1, id: id("00000000-0000-0001-0000-000000000002")}
	if a.compare(b) >= 0 || b.compare(a) <= 0 || a.compare(a) != 0 {
		t.Error("the second half must decide first")
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
