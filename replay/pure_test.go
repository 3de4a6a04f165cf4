package replay

import (
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/registry"
	"github.com/almanac-events/almanac/schemas"
)

// Whatever the inserts of a shard, wherever SHARDS begins and wherever the cursor
// stands, the seam lies at an insert's end and no position is read twice or passed
// over; where that cannot be, it is an error.
func TestSeam(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ends := []uint64{0}
		for range rapid.IntRange(1, 8).Draw(t, "inserts") {
			ends = append(ends, ends[len(ends)-1]+rapid.Uint64Range(1, 5).Draw(t, "length"))
		}
		head := ends[len(ends)-1]
		s := &shard{Shard: registry.Shard{Topic: "app", Month: 202603, ID: 1}, from: 1, to: head + 3}
		first := rapid.Uint64Range(2, head+1).Draw(t, "first")
		next := rapid.Uint64Range(1, first-1).Draw(t, "next")
		after := mark{Number: next - 1}
		g := gapBefore(s, after, first)
		var at insertEnds
		for _, e := range ends[1:] {
			if e < g.next {
				at.below = e
			}
			if at.first == 0 && e >= g.next {
				at.first = e
			}
			if at.at == 0 && e >= g.need {
				at.at = e
			}
		}
		if rapid.Bool().Draw(t, "floor") { // an erasure took some of the head's rows, or a later one's
			at.floor = rapid.SampledFrom(ends).Draw(t, "at")
		}
		seam, err := g.seam(s, after, at)
		atEnd := at.below == next-1
		switch {
		case err != nil && atEnd:
			t.Fatalf("inserts %v, SHARDS from %d, next %d: %v", ends, first, next, err)
		case err == nil && (!atEnd || seam < first-1 || seam > head):
			t.Fatalf("inserts %v, SHARDS from %d, next %d: seam at %d", ends, first, next, seam)
		case err != nil && !errors.Is(err, ErrPurged) && !errors.Is(err, schemas.ErrRequest):
			t.Fatal(err)
		}
		// Rows that neither side has are an error, unless they are gone on purpose.
		at = insertEnds{below: head, floor: 0}
		if _, err := (gap{head + 1, head + 2}).seam(s, after, at); !errors.Is(err, ErrLost) {
			t.Fatalf("missing positions: %v", err)
		}
		at.floor = head + 2
		if seam, err := (gap{head + 1, head + 2}).seam(s, after, at); err != nil || seam != head+2 {
			t.Fatalf("erased positions: %d %v", seam, err)
		}
	})
}

// Where all rows up to the floor are gone, what comes next begins above it.
func TestSeamAboveFloor(t *testing.T) {
	t.Parallel()
	s := &shard{Shard: registry.Shard{Topic: "app", Month: 202603, ID: 1}, from: 1, to: 12}
	for name, c := range map[string]struct {
		g    gap
		at   insertEnds
		seam uint64 // 0: refused
	}{
		"rows of the floor's insert are left": {gap{4, 7}, insertEnds{first: 7, at: 7, floor: 7}, 0},
		"none is left":                        {gap{4, 8}, insertEnds{first: 10, at: 10, floor: 7}, 10},
		"just above it":                       {gap{8, 9}, insertEnds{first: 10, at: 10, floor: 7}, 10},
		"beyond the first above it":           {gap{9, 9}, insertEnds{first: 10, at: 10, floor: 7}, 0},
	} {
		seam, err := c.g.seam(s, mark{Number: c.g.next - 1}, c.at)
		if seam != c.seam || (err != nil) != (c.seam == 0) || err != nil && !errors.Is(err, ErrPurged) {
			t.Errorf("%s: %d %v", name, seam, err)
		}
	}
}

// A cursor that is older than what the sink has is only gone on from where the
// units behind it are made of what they were made of then.
func TestAgrees(t *testing.T) {
	t.Parallel()
	s := &shard{Shard: registry.Shard{Topic: "app", Month: 202603, ID: 1}, from: 1, to: 500}
	made := func(n uint64, by source) *unit { return &unit{shard: s, end: mark{Number: n}, by: by} }
	frame, alone := source{}, source{Stored: true}
	rows := func(begin, of uint64) source { return source{Stored: true, Begin: begin, Of: of} }
	for name, c := range map[string]struct {
		ahead *source
		unit  *unit
		reach uint64
		ok    bool
	}{
		"nothing ahead":                         {nil, made(4, rows(3, 90)), 64, true},
		"frames again":                          {&frame, made(4, frame), 64, true},
		"frames, now an insert of one":          {&frame, made(4, alone), 64, true},
		"frames, now an insert of several":      {&frame, made(4, rows(3, 90)), 64, false},
		"an insert out of reach":                {&frame, made(68, rows(67, 90)), 64, true},
		"its first unit far behind its begin":   {&frame, made(90, rows(66, 1)), 64, false},
		"part of a frame, now of an insert":     {&frame, made(4, rows(3, 90)), 1, false},
		"part of a frame, and the insert later": {&frame, made(6, rows(4, 90)), 1, true},
		"rows again":                            {ptr(rows(3, 90)), made(4, rows(3, 90)), 64, true},
		"rows, and some were erased":            {ptr(rows(3, 90)), made(4, rows(3, 89)), 64, false},
		"rows, then the next insert":            {ptr(rows(3, 90)), made(11, rows(10, 7)), 64, true},
		"rows, then frames":                     {ptr(rows(3, 90)), made(11, frame), 64, true},
		"an insert of one, then of several":     {&alone, made(5, rows(4, 90)), 64, true},
	} {
		m := mark{Number: 3, Ahead: c.ahead}
		if err := m.agrees(c.unit, c.reach); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrPurged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// An insert's rows are cut into at most as many units as it has positions, none
// empty, all together the whole.
func TestCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.Uint64Range(1, 300_000).Draw(t, "rows")
		k := min(rows, rapid.Uint64Range(1, 200).Draw(t, "positions"))
		before := uint64(0)
		for part := range k {
			end := cut(rows, k, part)
			if end <= before || end > rows {
				t.Fatalf("%d rows in %d: part %d ends at %d after %d", rows, k, part, end, before)
			}
			before = end
		}
		if before != rows {
			t.Fatalf("%d rows in %d end at %d", rows, k, before)
		}
	})
}

func TestPacer(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	first := int64(1e18)
	at := func(p *pacer, ms int64, now time.Duration) time.Duration {
		return p.due(first+ms*1e6, 1, start.Add(now)).Sub(start)
	}
	p := &pacer{Pace: Pace{Speed: 10}}
	for _, c := range []struct {
		ms   int64
		now  time.Duration
		want time.Duration
	}{{0, 0, 0}, {1000, 0, 100 * time.Millisecond}, {500, 200 * time.Millisecond, 200 * time.Millisecond}, {10_000, 300 * time.Millisecond, time.Second}} {
		if got := at(p, c.ms, c.now); got != c.want {
			t.Errorf("event at %d ms, %s after the start, is due at %s, want %s", c.ms, c.now, got, c.want)
		}
	}
	p = &pacer{Pace: Pace{Rate: 100}}
	for i := range 5 {
		if got, want := at(p, 0, 0), time.Duration(i)*10*time.Millisecond; got != want {
			t.Errorf("event %d is due at %s, want %s", i, got, want)
		}
	}
	// A sink that stood still for long is not flooded afterwards.
	if got := at(p, 0, time.Minute); got != time.Minute {
		t.Errorf("after a pause: due at %s", got)
	}
	if got := at(p, 0, time.Minute); got != time.Minute+10*time.Millisecond {
		t.Errorf("after a pause: the next is due at %s", got)
	}
	// Spans beyond what a duration holds do not wrap around.
	p = &pacer{Pace: Pace{Speed: 0.001}}
	p.due(1, 1, start)
	if got := p.due(1<<62, 1, start); got.Before(start.AddDate(100, 0, 0)) {
		t.Errorf("due %s", got)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for into, want := range map[string]Kind{"": IntoWriter, "-": IntoWriter, "copy": IntoTopic, "a.b": IntoSubject, "metrics.replayed.eu-1": IntoSubject} {
		if got, err := kindOf(into); err != nil || got != want {
			t.Errorf("%q is %q, %v", into, got, err)
		}
	}
	for _, into := range []string{"events.app.2026-01.0", "shards.x", "routed.a", "dead.app", "$KV.registry.x", "$JS.API.INFO", "_INBOX.x", "a.*", "a.>", ">", "*", "a..b", ".a", "a.", "a b.c", "No", "leases"} {
		if k, err := kindOf(into); !errors.Is(err, ErrTarget) || !errors.Is(err, schemas.ErrRequest) {
			t.Errorf("%q is taken as %q: %v", into, k, err)
		}
	}
}

// The same job is the same producer each time, and no other.
func TestProducerOf(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, job := range []string{"a", "b"} {
		for s := range schemas.Shard(3) {
			for part := range 3 {
				p := producerOf(job, s, part)
				if seen[p] || p != producerOf(job, s, part) || len(p) > schemas.MaxProducerBytes {
					t.Errorf("%q", p)
				}
				seen[p] = true
			}
		}
	}
}

// A frame of a replay without a filter is rendered as it is; a filter is a statement
// a frame, ten times the price.
func TestNoFilterNoStatement(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	for text, want := range map[string]bool{"": false, "level = 'error'": true} {
		where, err := filter.Parse(text, &topic)
		if err != nil {
			t.Fatal(err)
		}
		j := &Job{topic: topic, where: where, spec: Spec{Kind: IntoWriter}}
		if err := j.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if (j.filter != "") != want {
			t.Errorf("%q makes the condition %q", text, j.filter)
		}
	}
}
