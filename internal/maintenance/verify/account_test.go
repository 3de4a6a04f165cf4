package verify

import (
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// What was accepted is the sum of what became of it, whatever was found.
func TestAccountOfATopic(t *testing.T) {
	t.Parallel()
	lane := func(rows, dead uint64) map[string]checkpoint.Checkpoint {
		return map[string]checkpoint.Checkpoint{"0": {Rows: rows, Dead: dead}}
	}
	shard := func(routed, expected, stored uint64) compared {
		return compared{ShardReport: &ShardReport{Name: "s", Routed: routed, Expected: expected, Stored: stored, Distinct: stored}}
	}
	erased := shard(10, 7, 7)
	erased.Erased = 3
	kept := shard(10, 10, 10)
	kept.kept = 4
	for name, c := range map[string]struct {
		look     look
		want     Totals
		problems string
	}{
		"nothing":               {look{}, Totals{}, ""},
		"all stored":            {look{shards: []compared{shard(10, 10, 10)}, routed: lane(10, 0)}, Totals{Accepted: 10, Stored: 10}, ""},
		"some wait in EVENTS":   {look{shards: []compared{shard(10, 10, 10)}, routed: lane(10, 0), waiting: 5}, Totals{Accepted: 15, Stored: 10, Pending: 5}, ""},
		"some wait in SHARDS":   {look{shards: []compared{shard(10, 6, 6)}, routed: lane(10, 0)}, Totals{Accepted: 10, Stored: 6, Pending: 4}, ""},
		"routed since the look": {look{shards: []compared{shard(10, 10, 10)}, routed: lane(12, 0)}, Totals{Accepted: 12, Stored: 10, Pending: 2}, ""},
		"some are missing":      {look{shards: []compared{shard(10, 10, 8)}, routed: lane(10, 0)}, Totals{Accepted: 10, Stored: 8, Missing: 2}, ""},
		"some are there twice":  {look{shards: []compared{shard(10, 10, 12)}, routed: lane(10, 0)}, Totals{Accepted: 10, Stored: 12, Doubled: 2}, ""},
		"some were erased":      {look{shards: []compared{erased}, routed: lane(10, 0)}, Totals{Accepted: 10, Stored: 7, Erased: 3}, ""},
		"a fork kept more":      {look{shards: []compared{kept}, routed: lane(6, 0)}, Totals{Accepted: 10, Stored: 10}, ""},
		"letters": {
			look{shards: []compared{shard(10, 10, 10)}, routed: lane(10, 5), letters: registry.Letters{Retried: 2, Dropped: 1}},
			Totals{Accepted: 13, Stored: 10, Dead: 2, Discarded: 1}, "",
		},
		"frames that both streams lost": {
			look{shards: []compared{shard(10, 10, 10)}, routed: map[string]checkpoint.Checkpoint{"0": {Rows: 10, Lost: []checkpoint.LostFrames{{Rows: 3, From: 2, To: 4}}}}},
			Totals{Accepted: 13, Stored: 10, Missing: 3}, "positions 2 to 4",
		},
		"shards ahead of their checkpoints": {look{shards: []compared{shard(10, 10, 10)}, routed: lane(9, 0)}, Totals{Accepted: 9, Stored: 10}, "its shards have 10 rows"},
		"a problem of no shard":             {look{problems: []string{"odd"}}, Totals{}, "odd"},
		"a shard without an entry":          {look{unknown: []ShardReport{{Name: "u", Problems: []string{"unknown"}}}}, Totals{}, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			c.look.topic, c.look.frames = &schemas.Topic{Name: "app"}, &reading{}
			rep := c.look.report()
			if rep.Totals != c.want {
				t.Errorf("%+v, want %+v", rep.Totals, c.want)
			}
			var problems []string
			for _, s := range rep.Shards {
				problems = append(problems, s.Problems...)
			}
			if got := strings.Join(problems, "; "); (got == "") != (c.problems == "") || !strings.Contains(got, c.problems) {
				t.Errorf("problems are %q, want %q", got, c.problems)
			}
		})
	}
}

// What earlier runs proved is counted as taken, since the oldest of them.
func TestAccountOfEarlierProofs(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	l := look{topic: &schemas.Topic{Name: "app"}, frames: &reading{taken: 7}}
	for i, taken := range []bool{true, false, true} {
		l.shards = append(l.shards, compared{ShardReport: &ShardReport{Stored: 10, Expected: 10, Routed: 10, Distinct: 10, provenAt: at.AddDate(0, 0, -i)}, taken: taken})
	}
	l.routed = map[string]checkpoint.Checkpoint{"0": {Rows: 30}}
	if got, want := l.report().Taken, (Taken{Shards: 2, Rows: 20, Frames: 7, Since: at.AddDate(0, 0, -2)}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
