package tables

import (
	"fmt"
	"slices"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// What is asked about many shards together is what each of them answers alone.
func TestAtEnds(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t)
	db, err := Open(srv.HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	ctx := t.Context()
	topic := schemas.NewTopic("app")
	ends := []End{}
	for i := range 2*endsChunk + 1 { // three statements
		ends = append(ends, End{Ref: schemas.ShardRef{Topic: "app", Month: 202611, ID: schemas.Shard(uint64(i)<<32 | 7)}, Pos: uint64(1 + i%3), Least: uint64(1 + i%2)})
	}
	none, err := db.AtEnds(ctx, "app", ends)
	if err != nil || len(none) > 0 {
		t.Fatalf("without a table: %d shards, %v", len(none), err)
	}
	if err := db.Ensure(ctx, &topic); err != nil {
		t.Fatal(err)
	}
	// Of each but every fifth, two rows at position 1 and one each at 2 and 3; of a few, as each statement makes a part a shard.
	some := slices.Clone(ends[:6])
	some = append(some, ends[endsChunk-1], ends[endsChunk], ends[len(ends)-1])
	for i, e := range some {
		if i%5 == 4 {
			continue
		}
		q := fmt.Sprintf("INSERT INTO %s (month, shard, pos, id, ts) SELECT %d, %d, [1, 1, 2, 3][number + 1], generateUUIDv7(number), now64(9) + number FROM numbers(4)",
			sql.QuotedTable(db.Database, "app"), uint32(e.Ref.Month), uint64(e.Ref.ID))
		if err := db.Conn().Exec(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	groups, err := db.AtEnds(ctx, "app", ends)
	if err != nil {
		t.Fatal(err)
	}
	weighted, err := db.WeightedIDs(ctx, "app", ends)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(some) - 1; len(groups) != want || len(weighted) != want {
		t.Errorf("%d and %d shards have rows, want %d", len(groups), len(weighted), want)
	}
	for i, e := range some {
		all, err := db.Groups(ctx, e.Ref)
		if err != nil {
			t.Fatal(err)
		}
		var at Group
		var w Weighted
		for _, g := range all {
			if g.Pos <= e.Pos {
				w.IDs, w.Weighted = w.IDs+g.IDs, w.Weighted+g.IDs*max(g.Pos, e.Least)
			}
			if g.Pos == e.Pos {
				at = g
			}
		}
		if (len(all) > 0) != (i%5 != 4) || groups[e.Ref] != at || weighted[e.Ref] != w {
			t.Errorf("shard %d: %+v and %+v, want %+v and %+v, of %+v", i, groups[e.Ref], weighted[e.Ref], at, w, all)
		}
	}
}
