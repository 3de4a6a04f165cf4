package fronts

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

const mib = 1 << 20

func TestFree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		use  Use
		p    Purpose
		want int64
	}{
		"new keys leave an eighth":            {Use{Stream: schemas.StreamDocs, Bytes: 100 * mib, Limit: 800 * mib}, Grow, 600 * mib},
		"changes leave half of it":            {Use{Stream: schemas.StreamDocs, Bytes: 100 * mib, Limit: 800 * mib}, Change, 650 * mib},
		"ends have all":                       {Use{Stream: schemas.StreamDocs, Bytes: 100 * mib, Limit: 800 * mib}, End, 700 * mib},
		"a reserve has 16 MiB at least":       {Use{Stream: schemas.StreamDocs, Limit: 64 * mib}, Grow, 48 * mib},
		"and is a half at most":               {Use{Stream: schemas.StreamDocs, Limit: 8 * mib}, Grow, 4 * mib},
		"a timer's end is paid by new ones":   {Use{Stream: schemas.StreamTimers, Keys: mib / TimerEnds * 10, Limit: 800 * mib}, Grow, 700*mib - mib/TimerEnds*10*TimerEnds},
		"and not by ends":                     {Use{Stream: schemas.StreamTimers, Keys: 1000, Limit: 800 * mib}, End, 800 * mib},
		"a front that was made smaller":       {Use{Stream: schemas.StreamDocs, Bytes: 100 * mib, Limit: 64 * mib}, Grow, -52 * mib},
		"a front without a limit":             {Use{Stream: schemas.StreamDocs, Bytes: 100 * mib}, Grow, 1 << 62},
		"keys of documents end in what is in": {Use{Stream: schemas.StreamDocs, Keys: 1 << 40, Limit: 800 * mib}, Grow, 700 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.use.Free(c.p); got != c.want {
				t.Errorf("%d are free, expected %d", got, c.want)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	use := Use{Stream: schemas.StreamDocs, Bytes: 300 * mib, Limit: 800 * mib} // 400 MiB are free for new keys, 1.6 of them at once
	full := Use{Stream: schemas.StreamDocs, Bytes: 700*mib - 100<<10, Limit: 800 * mib}
	for name, c := range map[string]struct {
		use               Use
		p                 Purpose
		n, unseen, flying int64
		stale             bool
		want              answer
	}{
		"room":                               {use: use, n: 1000, want: admitted},
		"by an old look":                     {use: use, n: 1000, stale: true, want: lookAgain},
		"an end does not look":               {use: use, p: End, n: 1000, stale: true, want: admitted},
		"more than may be on its way":        {use: use, n: mib, unseen: mib, flying: mib, want: waitForOthers},
		"some of it has landed":              {use: use, n: mib, unseen: mib, flying: mib - 1, want: lookAgain},
		"a large one goes alone":             {use: use, n: 8 * mib, want: admitted},
		"and waits for that":                 {use: use, n: 8 * mib, unseen: 1, flying: 1, want: waitForOthers},
		"one that several could not have":    {use: use, n: 51 * mib, want: noSpace},
		"the last room":                      {use: full, n: 100 << 10, want: admitted},
		"no room":                            {use: full, n: 100<<10 + 1, want: noSpace},
		"no room for it with what is flying": {use: full, n: 60 << 10, unseen: 60 << 10, flying: 60 << 10, want: waitForOthers},
		"a change still has":                 {use: full, p: Change, n: 200 << 10, want: admitted},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(&c.use, c.p, c.n, c.unseen, c.flying, !c.stale); got != c.want {
				t.Errorf("%d, expected %d", got, c.want)
			}
		})
	}
}

// Many writers at once, each of which sees what the front held a moment ago, stay within half of the reserve.
func TestWritersDoNotPassTheReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit, writers = 256 * mib, 32
		var stored atomic.Int64
		look := func(context.Context) (Use, error) {
			u := Use{Stream: schemas.StreamDocs, Bytes: uint64(stored.Load()), Limit: limit}
			<-time.After(time.Millisecond) // and others store meanwhile
			return u, nil
		}
		done := make(chan error)
		for w := range writers {
			s := newSpace(look)
			go func() {
				for i := 0; ; i++ {
					n := int64(300<<10) >> (i % 3)
					land, err := s.enter(t.Context(), Grow, n)
					if err != nil {
						done <- err
						return
					}
					<-time.After(time.Duration(1+(w+i)%7) * time.Millisecond)
					stored.Add(n)
					land()
				}
			}()
		}
		for range writers {
			if err := <-done; !errors.Is(err, ErrFull) {
				t.Error(err)
			}
		}
		got, most := stored.Load(), limit-Reserve(limit)/2
		if got > most || got < limit-Reserve(limit)-writers*(300<<10) {
			t.Errorf("%d bytes were stored of %d, expected up to %d", got, limit, most)
		}
		t.Logf("%d bytes above what new keys may have, of a reserve of %d", got-(limit-Reserve(limit)), Reserve(limit))
	})
}

// A write whose turn does not come before its time ends was not sent, and one that waits goes once there is room.
func TestSpaceWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSpace(func(context.Context) (Use, error) { return Use{Stream: schemas.StreamDocs, Limit: 64 * mib}, nil })
		land, err := s.enter(t.Context(), Grow, 300<<10)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := s.enter(ctx, Grow, 300<<10); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("beside one that is on its way: %v", err)
		}
		time.AfterFunc(time.Second, land)
		land, err = s.enter(t.Context(), Grow, 300<<10)
		if err != nil {
			t.Fatal(err)
		}
		land()
	})
}
