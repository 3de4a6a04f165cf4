package registry

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

func TestNextStep(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	last := time.Date(2026, 11, 10, 8, 0, 0, 0, time.UTC)
	end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	full := Shard{Month: november, Status: Closed, MinTs: last.Add(-day).UnixNano(), MaxTs: last.UnixNano(), CreatedAt: last.Add(-day)}
	with := func(change func(*Shard)) Shard {
		s := full
		change(&s)
		return s
	}
	status := func(st Status) Shard { return with(func(s *Shard) { s.Status = st }) }
	empty := with(func(s *Shard) { s.MinTs, s.MaxTs = november.End(), november.Start()-1 })
	for name, c := range map[string]struct {
		s                Shard
		keep, anonymised int
		now              time.Time
		want             Step
	}{
		"kept forever":                        {full, 0, 0, end.AddDate(100, 0, 0), Keep},
		"to the last instant":                 {full, 30, 0, last.AddDate(0, 0, 30), Keep},
		"an instant later":                    {full, 30, 0, last.AddDate(0, 0, 30).Add(1), DropIt},
		"a hundred years are not an overflow": {full, schemas.MaxKeepDays, 0, end.AddDate(90, 0, 0), Keep},
		"sealed is closed first":              {status(Sealed), 30, 0, end.AddDate(1, 0, 0), Keep},
		"active is retired first":             {status(Active), 30, 0, last.AddDate(0, 0, 30).Add(1), RetireIt},
		"active and not past":                 {status(Active), 30, 0, last.AddDate(0, 0, 30), Keep},
		"active and young":                    {with(func(s *Shard) { s.Status, s.CreatedAt = Active, end.AddDate(1, 0, 0) }), 30, 0, end.AddDate(1, 0, 0).Add(day - 1), Keep},
		"active and a day old":                {with(func(s *Shard) { s.Status, s.CreatedAt = Active, end.AddDate(1, 0, 0) }), 30, 0, end.AddDate(1, 0, 0).Add(day), RetireIt},
		"retired already":                     {with(func(s *Shard) { s.Status, s.Reason = Active, "rows" }), 30, 0, end.AddDate(1, 0, 0), Keep},
		"empty, the month is not past":        {empty, 30, 0, end.AddDate(0, 0, 30).Add(-1), Keep},
		"empty, the month is past":            {empty, 30, 0, end.AddDate(0, 0, 30), DropIt},
		"to be anonymised":                    {full, 30, 7, last.AddDate(0, 0, 7).Add(1), AnonymiseIt},
		"not yet":                             {full, 30, 7, last.AddDate(0, 0, 7), Keep},
		"active, to be anonymised":            {status(Active), 0, 7, last.AddDate(0, 0, 7).Add(1), RetireIt},
		"anonymised":                          {with(func(s *Shard) { s.Anonymised = []string{"ip", "user_id"} }), 0, 7, end, Keep},
		"anonymised, and a field is new":      {with(func(s *Shard) { s.Anonymised = []string{"ip"} }), 0, 7, end, AnonymiseIt},
		"both past: dropped":                  {full, 30, 7, end.AddDate(1, 0, 0), DropIt},
		"begun is ended":                      {status(Dropping), 0, 0, last, DropIt},
		"gone":                                {status(Dropped), 1, 0, end.AddDate(1, 0, 0), Keep},
	} {
		t.Run(name, func(t *testing.T) {
			topic := schemas.NewTopic("app")
			topic.KeepDays = c.keep
			if c.anonymised > 0 {
				topic.Anonymise = schemas.Anonymise{AfterDays: c.anonymised, Fields: []string{"user_id", "ip"}}
			}
			if got := c.s.NextStep(&topic, c.now); got != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
			// What is overdue was due for an hour, and what was done is never overdue.
			step, _ := c.s.Overdue(&topic, c.now.Add(-overdueAfter))
			if c.want == Keep && c.s.Status == Closed && step != Keep || c.s.Status == Dropped && step != Keep {
				t.Errorf("%s: overdue to %q, nothing was due", name, step)
			}
			if step, since := c.s.Overdue(&topic, c.now.AddDate(1, 0, 0)); (c.want == DropIt || c.want == AnonymiseIt) && (step == Keep || !since.Before(c.now.AddDate(1, 0, 0))) {
				t.Errorf("%s: a year later overdue to %q since %s", name, step, since)
			}
		})
	}
}

// Retiring leaves the lane without an active shard, whatever comes meanwhile; the
// next frame makes one.
func TestRetire(t *testing.T) {
	t.Parallel()
	r, ctx, s := placed(t, 1)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if err := r.Retire(ctx, s); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	h, err := r.Head(ctx, "app", november)
	if err != nil || len(h.Active) != 0 || h.Retired[s.ID] != 1 {
		t.Fatalf("head entry: %+v (%v)", h, err)
	}
	// A router that does not know yet finds it full.
	next, err := r.Rotate(ctx, s, "rows", Point{}, noon)
	if err != nil || next.ID == s.ID {
		t.Fatalf("rotated to %+v (%v)", next, err)
	}
	topic := schemas.NewTopic("app")
	if again, err := r.Place(ctx, &topic, november, 1, Point{}, noon); err != nil || again.ID != next.ID {
		t.Errorf("placed %s after %s (%v)", again.ID, next.ID, err)
	}
	if err := r.Retire(ctx, s); err != nil { // it is active no more: nothing
		t.Error(err)
	}
	if h, err = r.Head(ctx, "app", november); err != nil || h.Active[1] != next.ID {
		t.Errorf("the successor was retired too: %+v (%v)", h, err)
	}
	if err := r.Seal(ctx, s.Ref(), Point{}, 4, 40, 400); err != nil {
		t.Fatal(err)
	}
	if s, err = r.Shard(ctx, s.Ref()); err != nil || s.Status != Sealed || s.Reason != reasonRetention {
		t.Errorf("sealed: %+v (%v)", s, err)
	}
}

// Only what is closed is marked, the first to mark it counts, and the floor stands
// at the shard's end from then on.
func TestMarkDropping(t *testing.T) {
	t.Parallel()
	r, ctx, s := placed(t, 0)
	if _, err := r.MarkDropping(ctx, s.Ref(), seen(t, r), 9, "kept 1 days", noon); !errors.Is(err, ErrConflict) {
		t.Fatalf("marking an active shard: %v", err)
	}
	if err := r.Retire(ctx, s); err != nil {
		t.Fatal(err)
	}
	if err := r.Seal(ctx, s.Ref(), Point{}, 7, 100, 1000); err != nil {
		t.Fatal(err)
	}
	sealed, err := r.Shard(ctx, s.Ref())
	if err != nil {
		t.Fatal(err)
	}
	if closed, err := r.Close(ctx, sealed, 100, noon.UnixNano(), noon.UnixNano()); err != nil || !closed {
		t.Fatalf("%v, %v", closed, err)
	}
	if err := r.MarkAnonymised(ctx, s.Ref(), []string{"user_id", "ip"}, noon); err != nil {
		t.Fatal(err)
	}
	if err := r.MarkAnonymised(ctx, s.Ref(), []string{"ip", "level"}, noon.Add(1)); err != nil {
		t.Fatal(err)
	}
	if err := r.MarkDropped(ctx, s); err != nil { // not marked: nothing
		t.Fatal(err)
	}
	s, err = r.Shard(ctx, s.Ref())
	if err != nil || s.Status != Closed {
		t.Fatalf("%+v, %v", s, err)
	}
	before := seen(t, r)
	for i := range 3 {
		got, err := r.MarkDropping(ctx, s.Ref(), before, uint64(100-i), "kept 1 days", noon.Add(time.Duration(i)))
		if err != nil || got.Status != Dropping || got.Floor != 7 || got.DroppedRows != 100 || !got.DroppedAt.Equal(noon) {
			t.Errorf("marked: %+v (%v)", got, err)
		}
	}
	for range 2 {
		if err := r.MarkDropped(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	got, err := r.Shard(ctx, s.Ref())
	if err != nil || got.Status != Dropped || got.Floor != 7 || len(got.Anonymised) != 3 {
		t.Errorf("dropped: %+v (%v)", got, err)
	}
}
