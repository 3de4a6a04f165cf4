package usage

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/rollups"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// What TestRepeatsKeepUp is measured with: the rows that are stored before, how many new ones come in a second, and for
// how many seconds.
const (
	historyEnv = "ALMANAC_USAGE_HISTORY"
	rateEnv    = "ALMANAC_USAGE_RATE"
	secondsEnv = "ALMANAC_USAGE_SECONDS"
)

func numberOf(name string, small int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return small
}

// New rows come on top of a history at a rate, one in a hundred of them a copy of an old one, while repeats are looked for
// every five seconds: each copy is marked, and nothing else. How far the marks are behind and what they cost is printed.
func TestRepeatsKeepUp(t *testing.T) {
	t.Parallel()
	history, rate, seconds := numberOf(historyEnv, 20_000), numberOf(rateEnv, 2_000), numberOf(secondsEnv, 1)
	r := newRigOf(t, schemas.Topic{Name: "usage", Fields: []schemas.Field{{Name: "cause", Type: schemas.TypeString}}, OnceBy: []string{"type", "cause"}})
	const month, shards, ticks = 202602, 4, 5
	begin := at(t, "2026-02-01T00:00:00Z").UnixMilli()
	// fill stores rows with causes from a number on; of every shard those of one insert have one position.
	fill := func(first, count, shift, pos int) {
		r.Exec(fmt.Sprintf(`INSERT INTO %s (ts, id, type, user_id, cause, month, shard, pos)
SELECT fromUnixTimestamp64Milli(toInt64(%d + %d + (number * 7919) %% 2400000000), 'UTC'), generateUUIDv7(number + %d), 'bytes', concat('cust-', toString(number %% 1000)),
 concat('bafyreia', leftPad(toString(cityHash64(number)), 51, '0')), %d, number %% %d + 1, %d
FROM numbers(%d, %d) SETTINGS max_partitions_per_insert_block = 0, max_insert_block_size = 1000000`,
			sql.QuotedTable(r.DB.Database, "usage"), begin, shift, shift+first, month, shards, pos, first, count))
	}
	ref := func(shard uint64) schemas.ShardRef {
		return schemas.ShardRef{Topic: "usage", Month: month, ID: schemas.Shard(shard)}
	}
	began, pos := time.Now(), 0
	for from := 0; from < history; from += 1_000_000 {
		pos++
		fill(from, min(1_000_000, history-from), 0, pos)
	}
	for shard := uint64(1); shard <= shards; shard++ { // it has no copies, which is known here
		var rows uint64
		if err := r.DB.Conn().QueryRow(t.Context(), fmt.Sprintf("SELECT count() FROM %s WHERE shard = %d", sql.QuotedTable(r.DB.Database, "usage"), shard)).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		r.Exec(sql.BeginExamined(&r.Topic, r.DB.Database, ref(shard), 1))
		r.Exec(sql.MarkExamined(&r.Topic, r.DB.Database, ref(shard), 1, uint64(pos), rows, "moved"))
	}
	t.Logf("%d rows of history in %s", history, time.Since(began).Round(time.Second))

	var mu sync.Mutex
	stored, behind := map[uint64]time.Time{}, []time.Duration{}
	marked := map[schemas.ShardRef]uint64{}
	u, err := rollups.New(rollups.Config{Registry: r.Reg, DB: r.DB, Hooks: rollups.Hooks{
		Fault: func(ref schemas.ShardRef, err error) { t.Errorf("%s: %v", ref, err) },
		Examined: func(ref schemas.ShardRef, to uint64) {
			mu.Lock()
			defer mu.Unlock()
			for p := max(marked[ref]+1, uint64(pos)+1); p <= to; p++ {
				behind = append(behind, time.Since(stored[p]))
			}
			marked[ref] = to
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- u.Run(ctx) }()
	cpu := func() (us uint64) {
		if err := r.DB.Conn().QueryRow(t.Context(), "SELECT sum(value) FROM system.events WHERE event = 'OSCPUVirtualTimeMicroseconds'").Scan(&us); err != nil {
			t.Fatal(err)
		}
		return us
	}
	each := rate / ticks
	copies, began, usedBefore := each/100, time.Now(), cpu()
	tick := time.NewTicker(time.Second / ticks)
	defer tick.Stop()
	for n := range seconds * ticks {
		p := pos + 1 + 2*n // of the new ones, and the next is that of the copies: all rows of a position come at once
		mu.Lock()
		stored[uint64(p)], stored[uint64(p+1)] = time.Now(), time.Now()
		mu.Unlock()
		fill(history+n*each, each-copies, 0, p)
		fill(n*copies, copies, 1000, p+1)
		<-tick.C
	}
	took, heads := time.Since(began), uint64(pos+2*seconds*ticks)
	used := cpu() - usedBefore
	embeddedtest.Eventually(t, 10*time.Minute, func() error {
		got, err := derived.Of(r.DB).Examined(t.Context(), "usage")
		for s, p := range got {
			if err == nil && p != heads {
				err = fmt.Errorf("%s is examined up to %d of %d", s, p, heads)
			}
		}
		return err
	})
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n, err := derived.Of(r.DB).Repeats(t.Context(), "usage"); err != nil || n != uint64(seconds*ticks*copies) {
		t.Errorf("%d are marked, want %d (%v)", n, seconds*ticks*copies, err)
	}
	slices.Sort(behind)
	t.Logf("%d rows/s onto %d for %s: marked %s after they were stored at the median, %s at most; ClickHouse used %.2f of a core, inserts included",
		rate, history, took.Round(time.Second), behind[len(behind)/2].Round(time.Millisecond), behind[len(behind)-1].Round(time.Millisecond), float64(used)/float64(took.Microseconds()))
}
