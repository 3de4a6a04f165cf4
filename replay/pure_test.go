package replay

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// A job that stopped within a position goes on with the first event that the sink does not have,
// whichever source the position comes from now, whatever an erasure took of it, and however often a
// client repeated itself.
func TestGiven(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		draw := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) entry {
			return entry{ts: rapid.Int64Range(1, 3).Draw(t, "ts"), id: schemas.ID{15: rapid.Byte().Draw(t, "id") % 4}, events: 1}
		}), 1, 30).Draw(t, "events")
		unit := func(rows []entry) *unit {
			u := &unit{end: position{Number: 7}, rows: slices.Clone(rows)}
			if len(rows) > 0 {
				u.rows = rapid.Permutation(u.rows).Draw(t, "as the source has them")
			}
			u.sort()
			return u
		}
		before := unit(draw)
		i := rapid.IntRange(0, len(before.rows)-1).Draw(t, "the last one given")
		g := before.upTo(i)
		erased := rapid.Byte().Draw(t, "erased") % 8
		left := func(e entry) bool { return e.id[15] != erased }
		var want, rows []entry
		for k, e := range before.rows {
			if left(e) {
				rows = append(rows, e)
				if k > i {
					want = append(want, e)
				}
			}
		}
		for k := range rows {
			rows[k].nth = 0
		}
		now := unit(rows)
		if got := now.rows[now.after(g):]; !slices.Equal(got, want) {
			t.Fatalf("%v are left, want %v", got, want)
		}
		now.end.Number = 8
		if n := now.after(g); n != 0 {
			t.Fatalf("%d events of another position are passed over", n)
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

// Frames are passed on as they are where an event has the same lane in both topics. Where those of the target have an
// identity, lanes that were cut by the producer's name or by another value are others.
func TestLanedAlike(t *testing.T) {
	t.Parallel()
	declared := func(x schemas.Topic) schemas.Topic {
		x.Name, x.Lanes = "app", 4
		x, err := x.Declared()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	number, text := []schemas.Field{{Name: "n", Type: schemas.TypeInt64}}, []schemas.Field{{Name: "n", Type: schemas.TypeString}}
	log, once := declared(schemas.Topic{LaneBy: []string{"n"}, Fields: number}), declared(schemas.Topic{OnceBy: []string{"n"}, Fields: number})
	fewer := once
	fewer.Lanes = 2
	one := once
	one.Lanes = 1
	ofOne := log
	ofOne.Lanes = 1
	for name, c := range map[string]struct {
		source, target schemas.Topic
		want           bool
	}{
		"logs":                      {log, log, true},
		"an identity":               {once, once, true},
		"into a log":                {once, log, true},
		"a log into an identity":    {log, once, false},
		"fewer lanes":               {once, fewer, false},
		"a log into one lane":       {ofOne, one, true},
		"the field of another type": {once, declared(schemas.Topic{OnceBy: []string{"n"}, Fields: text}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lanedAlike(&c.source, &c.target); got != c.want {
				t.Errorf("%s: %v", name, got)
			}
		})
	}
}
