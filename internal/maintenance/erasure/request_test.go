package erasure

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestCompile(t *testing.T) {
	topic := schemas.NewTopic("app", schemas.Field{Name: "ip", Type: schemas.TypeString})
	e, err := compile(Request{Topic: "app", Users: []string{"u-8", "u-7", "u-8", `it's\n`}, Where: "ip = '10.0.0.7'", From: noon, Reason: "why"}, &topic, noon)
	if err != nil {
		t.Fatal(err)
	}
	if e.From != noon.UnixNano() || e.To != math.MaxInt64 || !slices.Equal(e.Users, []string{`it's\n`, "u-7", "u-8"}) || e.State != ledger.Waiting || e.Schema != 1 {
		t.Errorf("%+v", e)
	}
	if e.Cond != "(`user_id` IN {p2:Array(String)}) AND (`ip` = {p1:String})" || e.Params["p1"] != "10.0.0.7" || e.Params["p2"] != `['it\'s\\n','u-7','u-8']` {
		t.Errorf("%s with %q", e.Cond, e.Params)
	}
	for name, req := range map[string]Request{
		"all of topic":    {},
		"a user is emp":   {Users: []string{"u", ""}},
		"must lie before": {From: noon, To: noon},
		"names shard":     {Where: "shard = '0123456789abcdef'"},
		"names pos":       {Where: "pos > 4 AND user_id = 'u'"},
		"unknown":         {Where: "missing = 1"},
		"the limit is 1":  {Users: []string{"u"}, Reason: strings.Repeat("x", MaxReasonBytes+1)},
	} {
		t.Run(name, func(t *testing.T) {
			req.Topic = "app"
			if _, err := compile(req, &topic, noon); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// A shard is covered up to its noted bound; else whole, if its end came from
// before the fence, and not at all, if it began behind.
func TestBound(t *testing.T) {
	e := &ledger.Erasure{Fence: 100, FenceTime: 5000, Bounds: map[schemas.Shard]uint64{3: 7}}
	end := func(s schemas.Source) end {
		return end{Tail: streams.Tail{Placed: schemas.Placed{Pos: 9, SourceSeq: s.Seq, SourceTime: s.Stored}}}
	}
	for _, c := range []struct {
		name   string
		id     schemas.Shard
		status registry.Status
		source schemas.Source
		has    bool
		want   uint64
	}{
		{"noted", 3, registry.Active, schemas.Source{Seq: 200}, true, 7},
		{"ended before", 4, registry.Closed, schemas.Source{Seq: 100, Stored: 5000}, true, math.MaxUint64},
		{"began behind", 4, registry.Sealed, schemas.Source{Seq: 101}, true, 0},
		{"began after a cut", 4, registry.Sealed, schemas.Source{Seq: 40, Stored: 5001}, true, 0},
		{"new and empty", 4, registry.Active, schemas.Source{}, false, 0},
		{"lost its end", 4, registry.Closed, schemas.Source{}, false, math.MaxUint64},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := bound(e, &registry.Shard{ID: c.id, Status: c.status}, end(c.source), c.has); got != c.want {
				t.Errorf("%s: covered up to %d, want %d", c.name, got, c.want)
			}
		})
	}
}

// Where frames are missing at the fence, the last covered position is not known:
// taken too high, it would erase what the user did since.
func TestEdge(t *testing.T) {
	at := func(pos, source uint64) schemas.Placed { return schemas.Placed{Pos: pos, SourceSeq: source} }
	since := func(pos, source uint64) schemas.Placed {
		return schemas.Placed{Pos: pos, SourceSeq: source, SourceTime: 5001}
	}
	for name, c := range map[string]struct {
		before, first schemas.Placed
		known         uint64
		bound         uint64
		exact         bool
	}{
		"both are there":       {at(7, 100), at(8, 101), 5, 7, true},
		"began behind":         {at(1, 101), at(1, 101), 0, 0, true},
		"purged from behind":   {at(12, 140), at(12, 140), 7, 11, false},
		"purged on both sides": {at(9, 150), at(9, 150), 0, 8, false},
		"after a cut":          {at(7, 100), since(8, 40), 5, 7, true},
		"purged after a cut":   {since(12, 40), since(12, 40), 7, 11, false},
		"of which one went":    {since(11, 39), since(12, 40), 7, 11, false},
		"purged up to there":   {at(8, 101), at(8, 101), 7, 7, true},
	} {
		t.Run(name, func(t *testing.T) {
			if bound, exact := edge(c.before, c.first, schemas.Source{Seq: 100, Stored: 5000}, c.known); bound != c.bound || exact != c.exact {
				t.Errorf("%s: %d, %t", name, bound, exact)
			}
		})
	}
}

// A redacted entry names no person, matches nothing, and keeps the proof's hash.
func TestRedacted(t *testing.T) {
	e := ledger.Erasure{ID: "x", Users: []string{"u-7"}, Where: "ip = '10.0.0.7'", Cond: "1", Params: map[string]string{"p1": "u-7"}, Rows: 5}
	before, err := hash(&Proof{Erasure: e})
	if err != nil {
		t.Fatal(err)
	}
	r := Redacted(e)
	if r.Users[0] != ledger.Pseudonym("x", "u-7") || strings.Contains(r.Where, "10.0") || r.Cond != "0" || len(r.Params) != 0 || r.Rows != 5 || e.Users[0] != "u-7" {
		t.Errorf("%+v, from %+v", r, e)
	}
	if after, err := hash(&Proof{Erasure: r}); err != nil || after != before {
		t.Errorf("the hash became %s, was %s (%v)", after, before, err)
	}
	if ledger.Pseudonym("y", "u-7") == r.Users[0] {
		t.Error("two erasures give a user one pseudonym")
	}
}

// Text names a user as a word: what others wrote, whose names begin or end alike,
// is not taken.
func TestNames(t *testing.T) {
	t.Parallel()
	e := &ledger.Erasure{Users: []string{"u-1", "bob"}}
	for text, want := range map[string]bool{
		`{"user_id":"u-1","n":1}`:             true,
		`user=u-1`:                            true,
		"u-1":                                 true,
		"it was bob.":                         true,
		"user:bob, again":                     true,
		"\x80\x03u-1\x00":                     true,
		`{"user_id":"u-10"} then u-1 by name`: true,
		`{"user_id":"u-10"}`:                  false,
		`{"user_id":"eu-1"}`:                  false,
		`{"user_id":"u-1-b"}`:                 false,
		"bob@example.org":                     false,
		"jim.bob wrote":                       false,
		"bobby":                               false,
		"":                                    false,
	} {
		if got := names(e, []byte(text)); got != want {
			t.Errorf("%q names a user: %t, want %t", text, got, want)
		}
	}
}
