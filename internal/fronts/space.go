package fronts

import (
	"context"
	"sync"
	"time"
)

// space admits writes to a front by its purpose and by what is free. Between two looks at the front it counts the
// bytes that the writer itself has on its way, and holds them below a share of what is free: no writer sees what the
// others have on theirs.
type space struct {
	look  func(context.Context) (Use, error)
	round chan struct{} // held by the one that looks

	mu   sync.Mutex
	seen Use
	at   time.Time // when the look began
	// unseen are bytes that the look may lack: of writes that were on their way when it began or came after it.
	// flying are those that still are.
	unseen, flying int64
	landed         chan struct{} // closed when a write is no longer on its way
}

// lookAge is how long writes go by a look.
const lookAge = time.Second

func newSpace(look func(context.Context) (Use, error)) *space {
	return &space{look: look, round: make(chan struct{}, 1), landed: make(chan struct{})}
}

// answer is what a space says to a write.
type answer int

const (
	admitted answer = iota
	lookAgain
	waitForOthers
	noSpace
)

// decide says what becomes of a write of n bytes, by a look that is fresh or not.
func decide(u *Use, p Purpose, n, unseen, flying int64, fresh bool) answer {
	if p == End {
		return admitted
	}
	if !fresh {
		return lookAgain
	}
	free := u.Free(p)
	several, alone := window(free)
	switch {
	case n <= free-unseen && unseen+n <= several:
		return admitted
	case unseen > flying: // a look has what landed since the last
		return lookAgain
	case flying > 0:
		return waitForOthers
	case n <= free && n <= alone:
		return admitted
	}
	return noSpace
}

// enter waits until a write of n bytes may go, or refuses it with a *FullError. land must be called when it is no
// longer on its way.
func (s *space) enter(ctx context.Context, p Purpose, n int64) (land func(), err error) {
	for {
		s.mu.Lock()
		seen, landed := s.seen, s.landed
		a := decide(&seen, p, n, s.unseen, s.flying, time.Since(s.at) < lookAge)
		if a == admitted {
			s.unseen, s.flying = s.unseen+n, s.flying+n
			s.mu.Unlock()
			return sync.OnceFunc(func() { s.land(n) }), nil
		}
		at := s.at
		s.mu.Unlock()
		switch a {
		case lookAgain:
			err = s.again(ctx, at)
		case waitForOthers:
			select {
			case <-landed:
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		case noSpace:
			err = &FullError{Use: seen, Purpose: p, Need: n}
		}
		if err != nil {
			return nil, err
		}
	}
}

func (s *space) land(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flying -= n
	close(s.landed)
	s.landed = make(chan struct{})
}

// again looks at the front, unless another write did so after the look that began at.
func (s *space) again(ctx context.Context, at time.Time) error {
	select {
	case s.round <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.round }()
	s.mu.Lock()
	if !s.at.Equal(at) {
		s.mu.Unlock()
		return nil
	}
	began, before := time.Now(), s.unseen-s.flying // landed before the look: it has them
	s.mu.Unlock()
	u, err := s.look(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen, s.at, s.unseen = u, began, s.unseen-before
	return nil
}

// use is how full the front is, by a look that is not older than lookAge.
func (s *space) use(ctx context.Context) (Use, error) {
	s.mu.Lock()
	at, seen := s.at, s.seen
	s.mu.Unlock()
	if time.Since(at) < lookAge {
		return seen, nil
	}
	if err := s.again(ctx, at); err != nil {
		return Use{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen, nil
}
