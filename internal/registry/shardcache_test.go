package registry

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// A cache says what the bucket has at the moment: whatever was made, widened,
// rotated, sealed or taken away, by others, between two questions; and after the
// bucket was emptied and filled again, or lost its end.
func TestShardCache(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	topic := schemas.NewTopic("app")
	c := NewShardCache(r)
	step := 0
	check := func(what string) {
		t.Helper()
		step++
		for _, span := range [][2]int64{{november.Start(), november.End()}, {november.Start() + 100, november.Start() + 200}} {
			want, err := r.Shards(ctx, "app", november)
			if err != nil {
				t.Fatal(err)
			}
			want = slices.DeleteFunc(want, func(s Shard) bool { return !s.Overlaps(span[0], span[1]) })
			slices.SortFunc(want, func(a, b Shard) int { return cmp.Compare(a.ID, b.ID) })
			got, err := c.Overlapping(ctx, "app", november, span[0], span[1], time.Now())
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(got, func(a, b Shard) int { return cmp.Compare(a.ID, b.ID) })
			if d := gocmp.Diff(want, got, cmpopts.EquateEmpty(), gocmp.AllowUnexported(Shard{})); d != "" {
				t.Fatalf("%d, %s (-want +got):\n%s", step, what, d)
			}
		}
	}
	widen := func(lane int, lo int64) Shard {
		t.Helper()
		s, err := r.Place(ctx, &topic, november, lane, Point{}, noon)
		if err == nil {
			err = r.Widen(ctx, noon, Range{Shard: &s, Lo: lo, Hi: lo + 50, Rows: 1, Bytes: 1})
		}
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	check("nothing")
	for lane := range 4 {
		widen(lane, november.Start()+int64(lane)*1e13)
		check(fmt.Sprint("lane ", lane))
	}
	check("nothing new")
	s := widen(0, november.Start()+5e14)
	check("wider: the message the cache stood at is written again")
	if _, err := r.Rotate(ctx, s, "rows", Point{}, noon); err != nil {
		t.Fatal(err)
	}
	check("rotated")
	if err := r.Seal(ctx, s.Ref(), Point{}, 7, 9, 1); err != nil {
		t.Fatal(err)
	}
	check("sealed")
	if err := r.kv.Purge(ctx, s.key()); err != nil {
		t.Fatal(err)
	}
	check("taken away")
	last := widen(1, november.Start()+6e14)
	check("another")

	stream, err := r.js.Stream(ctx, schemas.KVStream)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(ctx, jetstream.WithPurgeSubject(schemas.KVSubject(last.key()))); err != nil {
		t.Fatal(err)
	}
	check("the end was lost")
	cfg := stream.CachedInfo().Config
	if err := r.js.DeleteStream(ctx, schemas.KVStream); err != nil {
		t.Fatal(err)
	}
	if _, err := r.js.CreateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	check("created again, empty")
	for lane := range 40 { // past the sequence at which the cache stood
		widen(lane, november.Start()+100)
	}
	check("created again, filled")
}

// Months beyond the bound are given up, those asked for least lately first, and
// read again when asked for.
func TestShardCacheGivesUp(t *testing.T) {
	t.Parallel()
	c := NewShardCache(nil)
	month := func(n int) topicMonth { return topicMonth{"app", schemas.Month(200001 + n)} }
	for n := range 3 {
		read := readMonth{shards: map[string]cachedShard{}, seen: anchor{1, "x", time.Time{}}}
		for i := range MaxCachedShards/2 - 1 {
			read.shards[fmt.Sprint(i)] = cachedShard{}
		}
		c.put(month(n), read, 0, 1, time.Now())
		if n == 1 { // the first again, so that the second is the oldest
			if _, ok := c.take(month(0), anchor{seq: 1}, readMonth{}, 0, 1, time.Now()); !ok {
				t.Fatal("the first month is not held")
			}
		}
	}
	if c.months[month(0)] == nil || c.months[month(1)] != nil || c.months[month(2)] == nil || c.held != 2*(MaxCachedShards/2-1) {
		t.Errorf("%d entries are held in %d months", c.held, len(c.months))
	}
}
