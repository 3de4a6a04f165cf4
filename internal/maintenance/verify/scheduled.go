package verify

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/fanout"
)

const (
	// runWait bounds one scheduled run.
	runWait = 30 * time.Minute
	// ownLook is how often a process looks whether the runs are its own.
	ownLook = 5 * time.Second
	// firstWait is how long after its start a process begins its first run: sinks store first what waited for them.
	firstWait = time.Minute
)

// Scheduled verifies all topics again and again, in one process of several.
type Scheduled struct {
	// Verify is Verifier.Run.
	Verify func(ctx context.Context, topic string) (*Report, error)
	// Every is how far apart runs begin.
	Every time.Duration
	// Owns says whether the runs are this process's.
	Owns func() bool
	// Began hears that the runs are this process's from now on, Left that they no longer are.
	Began, Left func()
	// Ended hears of each run.
	Ended func(rep *Report, took time.Duration, err error)
}

// Run verifies until ctx ends. A run that cannot be made is told, and made again when its next turn comes.
func (s *Scheduled) Run(ctx context.Context) error {
	look := time.NewTicker(ownLook)
	defer look.Stop()
	owned := false
	next := time.Now().Add(min(s.Every, firstWait))
	for {
		if owns := s.Owns(); owns != owned {
			if owned = owns; owned {
				s.Began()
			} else {
				s.Left()
			}
		}
		if owned && !time.Now().Before(next) {
			next = time.Now().Add(s.Every)
			s.once(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}

func (s *Scheduled) once(ctx context.Context) {
	ask, cancel := context.WithTimeout(ctx, runWait)
	defer cancel()
	began := time.Now()
	var rep *Report
	err := fanout.Call(func() (err error) {
		rep, err = s.Verify(ask, "")
		return err
	})
	if ctx.Err() == nil {
		s.Ended(rep, time.Since(began), err)
	}
}
