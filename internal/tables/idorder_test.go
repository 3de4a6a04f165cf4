package tables

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Go and SQL order ids in one way, and a table gives its rows in that order without a sort.
func TestIDsInOneOrder(t *testing.T) {
	t.Parallel()
	db, _, topic := openWith(t, schemas.NewTopic("app"))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	var ids []schemas.ID
	var source schemas.IDSource
	for i := range 2000 {
		var id schemas.ID
		switch i % 4 {
		case 0: // any bits
			binary.BigEndian.PutUint64(id[:8], rng.Uint64())
			binary.BigEndian.PutUint64(id[8:], rng.Uint64())
		case 1: // a half in common with the one before
			id = ids[i-1]
			id[rng.IntN(16)] ^= byte(1 + rng.IntN(255))
		case 2:
			id = source.Next(noon.UnixNano())
		case 3:
			id = schemas.SequenceID(noon.UnixNano(), rng.Uint64N(50), rng.Uint64N(50))
		}
		ids = append(ids, id)
	}
	table := sql.QuotedTable(db.Database, topic.Name)
	for some := range slices.Chunk(ids, 700) { // each a part
		values := make([]string, len(some))
		for i, id := range some {
			values[i] = fmt.Sprintf("(fromUnixTimestamp64Nano(%d, 'UTC'), '%s', %d, 5, 1)", noon.UnixNano(), id, november)
		}
		if err := db.Conn().Exec(t.Context(), "INSERT INTO "+table+" (ts, id, month, shard, pos) VALUES "+strings.Join(values, ", ")); err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(ids, schemas.ID.Compare)
	for _, by := range []string{schemas.IDOrderSQL, schemas.ColIDOrder, "toString(id)"} {
		t.Run(by, func(t *testing.T) {
			rows, err := db.Conn().Query(t.Context(), "SELECT toString(id) FROM "+table+" ORDER BY ts, "+by)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = rows.Close() }()
			for i := 0; rows.Next(); i++ {
				var text string
				if err := rows.Scan(&text); err != nil || text != ids[i].String() {
					t.Fatalf("number %d is %s in SQL and %s in Go (%v)", i, text, ids[i], err)
				}
			}
		})
		if by == "toString(id)" {
			continue
		}
		var plan []string
		rows, err := db.Conn().Query(t.Context(), "EXPLAIN actions = 1 SELECT * FROM "+table+" ORDER BY ts DESC, "+by+" DESC LIMIT 5")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var line string
			if err := rows.Scan(&line); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, line)
		}
		_ = rows.Close()
		if !strings.Contains(strings.Join(plan, "\n"), "Prefix sort description: ts DESC, toUInt128(id) DESC") {
			t.Errorf("ordered by %s, rows are not read in the table's order:\n%s", by, strings.Join(plan, "\n"))
		}
	}
	var after uint64
	bound := ids[len(ids)/2]
	if err := db.Conn().QueryRow(t.Context(), fmt.Sprintf("SELECT count() FROM %s WHERE %s > %s", table, schemas.IDOrderSQL, bound.OrderSQL())).Scan(&after); err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, id := range ids {
		if id.Compare(bound) > 0 {
			want++
		}
	}
	if int(after) != want {
		t.Errorf("SQL has %d ids above %s, Go %d", after, bound, want)
	}
}
