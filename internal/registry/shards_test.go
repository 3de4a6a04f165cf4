package registry

import (
	"errors"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

const november = schemas.Month(202611)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Fifty routers that race for the first shard of a lane get the same one.
func TestPlaceRace(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	topic := schemas.NewTopic("app")
	var mu sync.Mutex
	got := map[schemas.Shard]bool{}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			s, err := r.Place(ctx, &topic, november, i%2, Point{}, noon)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[s.ID] = true
		})
	}
	wg.Wait()
	shards, err := r.Shards(ctx, "app", november)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || len(shards) != 2 {
		t.Errorf("%d shards were given, %d exist, want 2 (one a lane) and no orphan", len(got), len(shards))
	}
}

// A rotation leaves exactly one active shard a lane, whichever router wins, and a retired
// one until it is sealed.
func TestRotateSealClose(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	topic := schemas.NewTopic("app")
	first, err := r.Place(ctx, &topic, november, 3, Point{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	next := make([]Shard, 8)
	for i := range next {
		wg.Go(func() {
			s, err := r.Rotate(ctx, first, "rows", Point{}, noon)
			if err != nil {
				t.Error(err)
			}
			next[i] = s
		})
	}
	wg.Wait()
	for _, s := range next {
		if s.ID != next[0].ID || s.ID == first.ID {
			t.Fatalf("rotations gave %s and %s", s.ID, next[0].ID)
		}
	}
	h, err := r.Head(ctx, "app", november)
	if err != nil {
		t.Fatal(err)
	}
	if h.Active[3] != next[0].ID || h.Retired[first.ID] != 3 || len(h.Retired) != 1 || h.Youngest[3] != next[0].Order || Compare(next[0], first) <= 0 {
		t.Errorf("head entry: %+v", h)
	}
	// Closing is for the sealed only; sealing for the retired only.
	if closed, err := r.Close(ctx, first, 10, 1, 2); err != nil || closed {
		t.Fatalf("an active shard closes: %v, %v", closed, err)
	}
	if err := r.Seal(ctx, next[0].Ref(), Point{}, 5, 5, 5); err != nil {
		t.Fatal(err)
	}
	if s, _ := r.Shard(ctx, next[0].Ref()); s.Status != Active {
		t.Errorf("the active shard became %s", s.Status)
	}
	if err := r.Seal(ctx, first.Ref(), Point{}, 7, 100, 1000); err != nil {
		t.Fatal(err)
	}
	s, err := r.Shard(ctx, first.Ref())
	if err != nil || s.Status != Sealed || s.SealedAt != 7 || s.Reason != "rows" || s.Rows != 100 {
		t.Errorf("sealed: %+v (%v)", s, err)
	}
	if err := r.Seal(ctx, first.Ref(), Point{}, 9, 1, 1); err != nil {
		t.Fatal(err)
	}
	// What changed since the shard was read may have changed its numbers.
	if _, err := r.RaiseFloor(ctx, first.Ref(), 1); err != nil {
		t.Fatal(err)
	}
	if closed, err := r.Close(ctx, s, 98, 1, 2); err != nil || closed {
		t.Fatalf("closed with an old reading: %v, %v", closed, err)
	}
	if s, err = r.Shard(ctx, first.Ref()); err != nil {
		t.Fatal(err)
	}
	if closed, err := r.Close(ctx, s, 99, noon.UnixNano(), noon.UnixNano()+5); err != nil || !closed {
		t.Fatalf("%v, %v", closed, err)
	}
	s, err = r.Shard(ctx, first.Ref())
	if err != nil || s.Status != Closed || s.SealedAt != 7 || s.Rows != 99 || s.MaxTs != noon.UnixNano()+5 {
		t.Errorf("closed: %+v (%v)", s, err)
	}
	if h, _ = r.Head(ctx, "app", november); len(h.Retired) != 0 {
		t.Errorf("still retired: %v", h.Retired)
	}
}

// Routers that widen at once lose nothing of each other's ranges.
func TestWidenRace(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	topic := schemas.NewTopic("app")
	first, err := r.Place(ctx, &topic, november, 0, Point{}, noon)
	if err != nil {
		t.Fatal(err)
	}
	if first.Overlaps(november.Start(), november.End()) {
		t.Error("an empty shard overlaps its month")
	}
	var wg sync.WaitGroup
	for i := range 10 {
		mine := first
		wg.Go(func() {
			at := noon.Add(time.Duration(i-5) * time.Hour).UnixNano()
			if err := r.Widen(ctx, noon, Range{Shard: &mine, Lo: at, Hi: at, Rows: 1, Bytes: 1}); err != nil {
				t.Error(err)
			}
			if mine.MinTs > at || mine.MaxTs < at {
				t.Errorf("widened to %d, got %d to %d", at, mine.MinTs, mine.MaxTs)
			}
		})
	}
	wg.Wait()
	s, err := r.Shard(ctx, first.Ref())
	if err != nil || s.MinTs > noon.Add(-5*time.Hour).UnixNano() || s.MaxTs < noon.Add(4*time.Hour).UnixNano() {
		t.Errorf("after all: %+v (%v)", s, err)
	}
}

// A widened range covers both what it had and what it got, and stays in its month.
func TestWidened(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		in := rapid.Int64Range(november.Start(), november.End()-1)
		a, b, c, d := in.Draw(rt, "a"), in.Draw(rt, "b"), in.Draw(rt, "c"), in.Draw(rt, "d")
		lo, hi := widened(min(a, b), max(a, b), min(c, d), max(c, d), november)
		if lo > min(a, b, c, d) || hi < max(a, b, c, d) || lo < november.Start() || hi >= november.End() {
			rt.Fatalf("[%d, %d] widened by [%d, %d] is [%d, %d]", a, b, c, d, lo, hi)
		}
		if min(a, b, c, d)-lo >= widenStep && lo != min(a, b) {
			rt.Fatalf("widened by more than a step: %d for %d", lo, min(c, d))
		}
	})
}

func TestApply(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	topic := schemas.NewTopic("auth", schemas.Field{Name: "ip", Type: schemas.TypeString})
	if _, did, err := r.Apply(ctx, topic, true); err != nil || did != Created {
		t.Fatalf("dry run: %s, %v", did, err)
	}
	if _, err := r.Topic(ctx, "auth"); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Fatalf("a dry run declared the topic: %v", err)
	}
	if _, did, err := r.Apply(ctx, topic, false); err != nil || did != Created {
		t.Fatalf("first: %s, %v", did, err)
	}
	if _, did, err := r.Apply(ctx, topic, false); err != nil || did != Unchanged {
		t.Fatalf("again: %s, %v", did, err)
	}
	topic.Fields = append(topic.Fields, schemas.Field{Name: "ms", Type: schemas.TypeFloat64})
	got, did, err := r.Apply(ctx, topic, false)
	if err != nil || did != Changed || got.Version != 2 || got.Fields[1].Since != 2 {
		t.Fatalf("a field more: %s, %+v, %v", did, got, err)
	}
	for name, change := range map[string]func(*schemas.Topic){
		"lanes":      func(t *schemas.Topic) { t.Lanes = 8 },
		"lane_by":    func(t *schemas.Topic) { t.LaneBy = []string{"service"} },
		"field type": func(t *schemas.Topic) { t.Fields = []schemas.Field{{Name: "ip", Type: schemas.TypeInt64}} },
	} {
		t.Run(name, func(t *testing.T) {
			want := schemas.NewTopic("auth", schemas.Field{Name: "ip", Type: schemas.TypeString})
			change(&want)
			if _, _, err := r.Apply(ctx, want, false); !errors.Is(err, schemas.ErrTopicChange) {
				t.Errorf("%s: %v, want it refused", name, err)
			}
		})
	}
	wide := schemas.Topic{Name: "wide", Lanes: 8}
	if _, _, err := r.Apply(ctx, wide, false); err != nil {
		t.Fatal(err)
	}
	wide.Lanes, wide.KeepDays = 0, 30 // does not say how many
	if got, did, err := r.Apply(ctx, wide, false); err != nil || did != Changed || got.Lanes != 8 {
		t.Errorf("a change that does not name the lanes: %s, %d lanes, %v; want the 8 that it has", did, got.Lanes, err)
	}
	if _, err := r.Topic(ctx, "nosuch"); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Errorf("an unknown topic: %v", err)
	}
	if _, err := r.Topic(ctx, "No"); !errors.Is(err, schemas.ErrTopicName) {
		t.Errorf("a bad name: %v", err)
	}
}

// A stream that could lose events is refused by name.
func TestSetupRefusesUnsafeStreams(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	for name, change := range map[string]func(schemas.StreamLimits){
		"by age": func(l schemas.StreamLimits) {
			cfg := schemas.EventsStream(l)
			cfg.MaxAge = time.Hour
			if _, err := r.js.UpdateStream(ctx, cfg); err != nil {
				t.Fatal(err)
			}
		},
		"discard old": func(l schemas.StreamLimits) {
			cfg := schemas.EventsStream(l)
			cfg.Discard = 0 // DiscardOld
			if _, err := r.js.UpdateStream(ctx, cfg); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			change(testLimits)
			if _, err := Setup(ctx, r.js.Conn(), testLimits); !errors.Is(err, streams.ErrUnsafe) {
				t.Errorf("%s: %v, want it refused", name, err)
			}
		})
	}
	if _, err := r.js.UpdateStream(ctx, schemas.EventsStream(testLimits)); err != nil {
		t.Fatal(err)
	}
	if _, err := Setup(ctx, r.js.Conn(), testLimits); err != nil {
		t.Errorf("put right: %v", err)
	}
}
