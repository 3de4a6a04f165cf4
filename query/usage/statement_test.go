package usage

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// The statements of reads are written down: a change of one shows.
// UPDATE_GOLDEN=1 writes them again.
func TestStatements(t *testing.T) {
	var b strings.Builder
	for _, c := range []struct {
		name string
		of   func(*scene) string
	}{
		{"bills of rows", func(s *scene) string { return s.of(s.quiet(), false).byKey() }},
		{"bills of rows, days and sums", func(s *scene) string { return s.of(s.open(), false).byKey() }},
		{"bills of one customer's space", func(s *scene) string {
			s.req = Request{Meter: "bytes", Provider: "p", Space: "it's", Customer: "c", GroupBy: BySpaceAndCustomer}
			return s.of(s.open(), false).byKey()
		}},
		{"bills by cause", func(s *scene) string { return s.of(s.open(), true).byKey() }},
		{"the bill of one space", func(s *scene) string {
			s.req = Request{Space: "s1"}
			return s.of(s.quiet(), true).byKey()
		}},
		{"the bills of one space's customers", func(s *scene) string {
			s.req = Request{Space: "s1", GroupBy: ByCustomer}
			return s.of(s.quiet(), true).byKey()
		}},
		{"bills by cause, of a customer", func(s *scene) string {
			s.req.Customer = "c"
			return s.of(s.open(), true).byKey()
		}},
		{"bills by cause, with once_within", func(s *scene) string {
			s.t.OnceWithin = time.Minute
			return s.of(s.open(), true).byKey()
		}},
		{"bills by day", func(s *scene) string {
			s.req.GroupBy = ByDay
			return s.of(s.open(), false).byTime()
		}},
		{"bills by month", func(s *scene) string {
			s.req.GroupBy = ByMonth
			return s.of(s.open(), false).byTime()
		}},
		{"a page of diffs", func(s *scene) string {
			return s.of(s.quiet(), false).diffs(place{7, "00000000-0000-7000-8000-000000000001"}, 3)
		}},
		{"diffs above positions, by cause", func(s *scene) string {
			s.req.above = Positions{{Topic: "usage", Month: 202601, ID: 1}: 5}
			return s.of(s.open(), true).diffs(place{}, 3)
		}},
		{"contradicting", func(s *scene) string { return s.of(s.open(), false).contradicting() }},
		{"contradicting without marks", func(s *scene) string {
			return s.of(&snapshot{Snapshot: &once.Snapshot{Topic: &s.t, Database: "db"}}, false).contradicting()
		}},
		{"contradictory", func(s *scene) string { return s.of(s.quiet(), false).contradictory() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &scene{t: schemas.NewTopicOf(kinds.Meter, "usage"), req: Request{GroupBy: ByMeter}}
			s.req.From, s.req.To = time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)
			from, to := s.req.From, s.req.To
			text := c.of(s)
			s.req.From, s.req.To = from, to
			fmt.Fprintf(&b, "-- %s\n%s;\n\n", c.name, strings.TrimSpace(text))
		})
	}
	const file = "testdata/statements.sql"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("%s differs; it is now\n%s", file, b.String())
	}
}

// scene is a topic and what is asked of it.
type scene struct {
	t   schemas.Topic
	req Request
}

// of is a planned statement.
func (s *scene) of(snap *snapshot, byCause bool) *statement {
	if s.req.From.IsZero() {
		s.req.From, s.req.To = time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)
	}
	st := &statement{t: &s.t, database: "db", req: &s.req, snap: snap, byCause: byCause}
	if err := st.plan(); err != nil {
		panic(err)
	}
	return st
}

// quiet is a snapshot of which all was examined; its shards lie before the range, across an edge of it, and inside.
func (s *scene) quiet() *snapshot {
	return s.snapshot(func(i int) uint64 { return 9 })
}

// open is one with a lane of which not all was examined, and a shard that retention dropped.
func (s *scene) open() *snapshot {
	snap := s.snapshot(func(i int) uint64 {
		if i == 3 {
			return 4
		}
		return 9
	})
	snap.shards[0].Gone, snap.Shards[0].Gone = true, true
	return snap
}

func (s *scene) snapshot(examined func(int) uint64) *snapshot {
	at := func(month time.Month, day int) int64 {
		return time.Date(2026, month, day, 1, 0, 0, 0, time.UTC).UnixNano()
	}
	snap := &snapshot{Snapshot: &once.Snapshot{Topic: &s.t, Database: "db", Marks: 2}}
	for i, span := range [][2]int64{{at(1, 1), at(1, 5)}, {at(1, 2), at(1, 20)}, {at(2, 1), at(2, 2)}, {at(2, 1), at(2, 2)}} {
		ref := schemas.ShardRef{Topic: "usage", Month: schemas.MonthOf(span[0]), ID: schemas.Shard(uint64(i) << schemas.LaneShift)}
		sh := once.Shard{Ref: ref, Closed: i == 1, Entry: registry.Shard{}, Progress: derived.Progress{
			Stored: schemas.Stored{Rows: 9, Head: 9, MinTs: span[0], MaxTs: span[1]}, Examined: examined(i), Sums: derived.Sums{Pos: 8, N: 7, Repeats: 1},
		}}
		snap.Shards = append(snap.Shards, sh)
		snap.shards = append(snap.shards, shardState{Shard: sh, exact: true})
	}
	return snap
}
