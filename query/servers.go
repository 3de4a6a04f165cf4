package query

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/tables"
)

// Servers says of the servers of one part whether they are there, and since when one is not. It is for a process without a
// Reader, also while that starts and has no connection yet. The zero value knows of no server. It is safe for concurrent use.
type Servers struct {
	known servers

	mu   sync.Mutex
	seen []string // servers of which anything is known
	nc   *nats.Conn
	db   *tables.DB
}

// UseNATS has NATS asked over a connection; nil: it is not asked, and stays as it was found last.
func (s *Servers) UseNATS(nc *nats.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nc = nc
}

// UseClickHouse has a ClickHouse asked; nil: it is not asked, and stays as it was found last.
func (s *Servers) UseClickHouse(db *tables.DB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.db = db
}

// Found notes how the caller found a server: err says why it is away, nil that it is there.
func (s *Servers) Found(server string, err error) {
	s.known.found(server, err, time.Now())
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.seen, server) {
		s.seen = append(s.seen, server)
		slices.Sort(s.seen)
	}
}

// Ask asks the servers in use, at once. It returns the servers of which anything is known, by name, and those of them that are away. It takes
// awayWait at most; where ctx ends first, the answer is what was known before.
func (s *Servers) Ask(ctx context.Context) (seen []string, away []Away) {
	s.mu.Lock()
	nc, db := s.nc, s.db
	s.mu.Unlock()
	var both sync.WaitGroup
	ask := func(server string, answers func(context.Context) error) {
		within, cancel := context.WithTimeout(ctx, awayWait)
		defer cancel()
		if err := answers(within); ctx.Err() == nil {
			s.Found(server, err)
		}
	}
	if nc != nil {
		both.Go(func() { ask(ServerNATS, func(ctx context.Context) error { return natsAnswers(ctx, nc) }) })
	}
	if db != nil {
		both.Go(func() { ask(ServerClickHouse, func(ctx context.Context) error { return clickHouseAnswers(ctx, db) }) })
	}
	both.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen), s.known.list()
}
