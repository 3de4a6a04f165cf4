package repair

import (
	"slices"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/reconcile"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

// frames is a chain of positions, each of 10 rows and 100 bytes, whose digest is
// its position.
func frames(positions ...uint64) chain {
	var c chain
	for _, p := range positions {
		c = c.add(link{pos: p, rows: 10, shardRows: 10 * p, shardBytes: 100 * p, source: 5 * p, seq: p, prev: [16]byte{byte(p - 1)}})
	}
	return c
}

// Rows that are the same in every column go only where frames can bring back an
// event that was logged twice, or where they are too many even so.
func TestCopies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chain chain
		floor uint64
		d     reconcile.Stretch
		want  []Do
	}{
		"logged twice, frames held":    {frames(1, 2), 0, reconcile.Stretch{Lo: 0, Hi: 2, Want: 20, Have: 20, Distinct: 19}, []Do{DropCopies, Insert}},
		"logged twice, frames purged":  {frames(5), 0, reconcile.Stretch{Lo: 0, Hi: 4, Want: 40, Have: 40, Distinct: 39}, nil},
		"logged twice, below a floor":  {frames(1, 2), 1, reconcile.Stretch{Lo: 0, Hi: 2, Want: 20, Have: 20, Distinct: 19}, []Do{Insert}},
		"doubled, frames purged":       {frames(5), 0, reconcile.Stretch{Lo: 0, Hi: 4, Want: 40, Have: 80, Distinct: 40}, []Do{DropCopies}},
		"both, frames purged":          {frames(5), 0, reconcile.Stretch{Lo: 0, Hi: 4, Want: 40, Have: 79, Distinct: 39}, nil},
		"both, frames held":            {frames(1, 2), 0, reconcile.Stretch{Lo: 0, Hi: 2, Want: 20, Have: 39, Distinct: 19}, []Do{DropCopies, Insert}},
		"fewer, one twice, none held":  {frames(5), 0, reconcile.Stretch{Lo: 0, Hi: 4, Want: 40, Have: 30, Distinct: 29}, []Do{Lost}},
		"fewer, all different, purged": {frames(5), 0, reconcile.Stretch{Lo: 0, Hi: 4, Want: 40, Have: 30, Distinct: 30}, []Do{Lost}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &shardPlan{chain: c.chain, held: c.chain, floor: c.floor, plan: &Plan{}}
			s.below([]reconcile.Stretch{c.d})
			var got []Do
			for i := range s.plan.Actions {
				got = append(got, s.plan.Actions[i].Do)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	c := frames(1, 2, 5, 6)
	gap := c.gaps()[0]
	if gap.from != 3 || gap.to != 4 || c.rowsOf(gap) != 20 {
		t.Fatalf("gap %+v", gap)
	}
	f := func(id byte, source, rows uint64) candidate {
		return candidate{link{rows: rows, source: source}, [16]byte{id}, 100}
	}
	for name, tc := range map[string]struct {
		found []candidate
		want  []uint64 // sources
	}{
		"both":                {[]candidate{f(3, 15, 10), f(4, 20, 10)}, []uint64{15, 20}},
		"a neighbour first":   {[]candidate{f(2, 10, 10), f(3, 15, 10), f(4, 20, 10)}, []uint64{15, 20}},
		"a repeat between":    {[]candidate{f(3, 15, 10), f(1, 17, 10), f(4, 20, 10)}, []uint64{15, 20}},
		"one is gone":         {[]candidate{f(4, 20, 10)}, nil},
		"the last is another": {[]candidate{f(3, 15, 10), f(9, 20, 10)}, nil},
		"rows do not add up":  {[]candidate{f(3, 15, 11), f(4, 20, 10)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.match(gap, tc.found, c.digests())
			var sources []uint64
			for i, l := range got {
				sources = append(sources, l.source)
				if l.pos != 3+uint64(i) || l.seq != 0 {
					t.Errorf("%s: %+v", name, l)
				}
			}
			if !slices.Equal(sources, tc.want) {
				t.Errorf("%s: %v, want %v", name, sources, tc.want)
			}
		})
	}
	if whole := c.with(c.match(gap, []candidate{f(3, 15, 10), f(4, 20, 10)}, c.digests())); len(whole.gaps()) != 0 || len(whole) != 6 || whole[3].shardRows != 40 {
		t.Errorf("with what was found: %+v", whole)
	}
}

func TestHeadOf(t *testing.T) {
	t.Parallel()
	entries := map[schemas.Shard]registry.Shard{}
	entry := func(id schemas.Shard, s registry.Status) {
		entries[id] = registry.Shard{Topic: "app", Month: 202611, ID: id, Status: s, Order: registry.Order{Point: registry.Point{Seq: uint64(id & 0xff)}}}
	}
	const three, four, five, nine = 1<<56 | 3, 1<<56 | 4, 2<<56 | 5, 3<<56 | 9
	entry(1, registry.Active)
	entry(2, registry.Active)
	entry(three, registry.Closed)
	entry(four, registry.Active)
	entry(five, registry.Sealed)
	chains := map[schemas.Shard]chain{1: frames(1, 2), 2: frames(1, 2, 3), three: frames(1), four: frames(1)}
	h, why, blank := headOf(registry.Head{Topic: "app", Month: 202611, Active: map[int]schemas.Shard{1: three, 3: nine}}, entries, chains)
	if h.Youngest[0].Seq != 2 || h.Youngest[1].Seq != 4 || h.Youngest[2].Seq != 5 {
		t.Errorf("youngest %v", h.Youngest)
	}
	if h.Active[0] != 2 || h.Active[1] != four || h.Active[3] != nine || len(h.Active) != 3 {
		t.Errorf("active %v", h.Active)
	}
	if len(h.Retired) != 1 || h.Retired[1] != 0 {
		t.Errorf("retired %v", h.Retired)
	}
	if len(blank) != 1 || blank[0].ID != nine || len(why) != 4 {
		t.Errorf("blank %v, why %v", blank, why)
	}
	if _, why, blank := headOf(h, entriesWith(entries, blank), chains); len(why)+len(blank) > 0 {
		t.Errorf("set right, it is still wrong: %v %v", why, blank)
	}
}

func entriesWith(entries map[schemas.Shard]registry.Shard, more []registry.Shard) map[schemas.Shard]registry.Shard {
	for _, e := range more {
		entries[e.ID] = e
	}
	return entries
}

// JSON whose fields were hashed comes back under the routers' key, or not at all.
func TestLeaves(t *testing.T) {
	t.Parallel()
	plain, hashes := schemas.NewTopic("app"), schemas.NewTopic("app")
	hashes.PII = []schemas.Private{{Field: schemas.ColUserID, Rule: schemas.PrivacyHash}}
	framed := nats.Header{}
	(&schemas.Frame{Producer: "p", Seq: 1, Schema: 1, Rows: 1}).SetHeaders(framed)
	for name, c := range map[string]struct {
		hasKey bool
		topic  *schemas.Topic
		header nats.Header
		want   bool
	}{
		"JSON, no key":          {false, &hashes, nats.Header{}, true},
		"JSON, the key":         {true, &hashes, nats.Header{}, false},
		"a frame, no key":       {false, &hashes, framed, false},
		"JSON, nothing to hash": {false, &plain, nats.Header{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := leaves(c.hasKey, c.topic, c.header); got != c.want {
				t.Errorf("%s: left alone: %t", name, got)
			}
		})
	}
}

// A gap of which only the ends were purged on purpose is a gap.
func TestNotPurged(t *testing.T) {
	t.Parallel()
	record := ledger.ErasureRecord{}
	record.AddPurged(3, 7)
	if got := record.NotPurged(ledger.Span{From: 3, To: 7}); !slices.Equal(got, []ledger.Span{{From: 4, To: 6}}) {
		t.Errorf("%v, want 4 to 6", got)
	}
}

// An entry that is made again has the place in its lane that it had, as far as its first frame tells, and ends where
// its last one came from. One of a lane that the topic does not have is sealed: no router is there to do it.
func TestEntryOfFrames(t *testing.T) {
	t.Parallel()
	ref := schemas.ShardRef{Topic: "app", Month: 202611, ID: 7}
	c := frames(1, 2)
	c[0].source, c[1].source, c[0].era, c[1].era = 40, 43, 2, 2
	x := truth{ref: ref, chain: c, end: 2}
	if e := x.entry(); e.Order.Point != (registry.Point{Era: 2, Seq: 39}) || e.Ended != (registry.Point{Era: 2, Seq: 43}) || e.Status != registry.Active {
		t.Errorf("%+v", e)
	}
	x.end = 3
	if e := x.entry(); e.Ended != (registry.Point{}) {
		t.Errorf("its last frame is gone, and it ended at %+v", e.Ended)
	}
	x = truth{ref: ref, chain: c[1:], end: 2, lane: schemas.NoLane}
	if e := x.entry(); e.Order != (registry.Order{}) || e.Status != registry.Sealed || e.SealedAt != 2 {
		t.Errorf("%+v", e)
	}
}
