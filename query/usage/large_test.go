package usage

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// rowsEnv is how many diffs TestLarge makes, and spacesEnv of how many spaces.
const (
	rowsEnv   = "ALMANAC_USAGE_ROWS"
	spacesEnv = "ALMANAC_USAGE_SPACES"
)

// Many diffs, a hundred a space unless told otherwise, and one in a thousand twice. Rows are made by ClickHouse
// itself: the reads are measured here, not the way in.
func TestLarge(t *testing.T) {
	t.Parallel()
	rows, err := strconv.Atoi(os.Getenv(rowsEnv))
	if err != nil {
		rows = 20_000
	}
	r := newRig(t)
	spaces, again := max(rows/100, 1), rows/1000
	if n, err := strconv.Atoi(os.Getenv(spacesEnv)); err == nil {
		spaces = n
	}
	const month, shards = 202602, 4
	begin := at(t, "2026-02-01T00:00:00Z").UnixMilli()
	fill := func(from, count, shift int) {
		r.Exec(fmt.Sprintf(`INSERT INTO %s (ts, id, type, user_id, provider, space, cause, delta, month, shard, pos)
SELECT fromUnixTimestamp64Milli(toInt64(%d + %d + (number * 7919) %% 2400000000), 'UTC'), generateUUIDv7(number + %d), 'bytes', concat('cust-', toString(number %% 1000)), 'did:web:provider',
 concat('did:key:z6Mk', toString(number %% %d)), concat('bafyreia', leftPad(toString(number), 51, '0')), 1, %d, number %% %d + 1, intDiv(number, 100000) + 1 + %d
FROM numbers(%d, %d) SETTINGS max_partitions_per_insert_block = 0, max_insert_block_size = 1000000`,
			sql.QuotedTable(r.DB.Database, "usage"), begin, shift, shift, spaces, month, shards, shift, from, count))
	}
	for from := 0; from < rows; from += 100_000 {
		fill(from, min(100_000, rows-from), 0)
	}
	took := func(what string, f func()) {
		t.Helper()
		began := time.Now()
		f()
		t.Logf("%-40s %s", what, time.Since(began).Round(time.Millisecond))
	}
	round := func() {
		u, err := rollups.New(rollups.Config{Registry: r.Reg, DB: r.DB, Hooks: rollups.Hooks{Fault: func(ref schemas.ShardRef, err error) { t.Errorf("%s: %v", ref, err) }}})
		if err != nil {
			t.Fatal(err)
		}
		for more := true; more; {
			if more, err = u.Round(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	took(fmt.Sprintf("%d diffs examined and summed", rows), round)
	fill(0, again, 1000) // copies, later by a second
	took(fmt.Sprintf("%d copies examined and summed", again), round)
	req := Request{From: at(t, "2026-02-01T00:00:00Z"), To: at(t, "2026-03-01T00:00:00Z"), GroupBy: BySpace}
	var want string
	q := fmt.Sprintf("SELECT toString(sum(toInt128(%d) - (%d + (number * 7919) %% 2400000000))) FROM numbers(%d)", req.To.UnixMilli(), begin, rows)
	if err := r.DB.Conn().QueryRow(t.Context(), q).Scan(&want); err != nil {
		t.Fatal(err)
	}
	all := func(what string, byCause bool) {
		t.Helper()
		total := req
		total.GroupBy, total.ByCause = Total, byCause
		if b := r.one(total); b.Usage != want || b.SizeEnd != fmt.Sprint(rows) || b.Causes != uint64(rows) || b.Repeats != uint64(again) {
			t.Errorf("%s: %+v, want %s", what, b, want)
		}
		every := req
		every.ByCause = byCause
		took(what, func() {
			if n := len(r.report(every).Bills); n != spaces {
				t.Errorf("%s: %d bills, want %d", what, n, spaces)
			}
		})
	}
	all("all spaces, with sums", false)
	one := req
	one.GroupBy, one.Space = Total, fmt.Sprint("did:key:z6Mk", 7%spaces)
	for range 3 {
		took("one space", func() { r.one(one) })
	}
	r.Exec("TRUNCATE TABLE " + sql.QuotedTable(r.DB.Database, "usage.sums"))
	all("all spaces, from rows and marks", false)
	took("one space, without sums", func() { r.one(one) })
	all("all spaces, by cause", true)
}
