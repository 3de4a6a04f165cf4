package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// The servers that Almanac stands on.
const (
	ServerNATS       = "NATS"
	ServerClickHouse = "ClickHouse"
)

// Away is a server that does not answer.
type Away struct {
	Server string `json:"server"`
	// Since is when this process first found it away.
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// awayWait is how long a server may take to say that it is there, before what others know is answered without it: less
// than the 2 s that /metrics waits for a source.
const awayWait = 1200 * time.Millisecond

// servers remembers since when servers are away. The zero value knows of none.
type servers struct {
	mu   sync.Mutex
	away map[string]Away
}

// found notes how a server is now.
func (s *servers) found(server string, err error, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.away, server)
		return
	}
	if s.away == nil {
		s.away = map[string]Away{}
	}
	one, known := s.away[server]
	if !known {
		one = Away{Server: server, Since: now.UTC().Truncate(time.Second)}
	}
	one.Why = schemas.Text(err)
	s.away[server] = one
}

// list returns those that are away, by name.
func (s *servers) list() []Away {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Away, 0, len(s.away))
	for _, one := range s.away {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b Away) int { return strings.Compare(a.Server, b.Server) })
	return out
}

// Servers asks both servers whether they are there, and returns those that are not: /metrics shows them. A gateway asks
// every few seconds and drops the answer, so that Since is when a server went, and not when it was first asked for. It takes
// awayWait at most; where ctx ends first, the list is what was known before.
func (r *Reader) Servers(ctx context.Context) []Away {
	var both sync.WaitGroup
	both.Go(func() { _ = r.here(ctx, ServerNATS) })
	both.Go(func() { _ = r.here(ctx, ServerClickHouse) })
	both.Wait()
	return r.servers.list()
}

// Away returns the servers that are away, as this process found them last, without asking them.
func (r *Reader) Away() []Away { return r.servers.list() }

// here asks a server whether it is there, and remembers the answer.
func (r *Reader) here(ctx context.Context, server string) error {
	ask, cancel := context.WithTimeout(ctx, awayWait)
	defer cancel()
	err := r.answers(ask, server)
	if ctx.Err() != nil { // the caller left: nothing is known
		return ctx.Err()
	}
	r.servers.found(server, err, time.Now())
	return err
}

func (r *Reader) answers(ctx context.Context, server string) error {
	if server == ServerClickHouse {
		return clickHouseAnswers(ctx, r.db)
	}
	return natsAnswers(ctx, r.js.Conn())
}

func clickHouseAnswers(ctx context.Context, db *tables.DB) error {
	if err := db.Answers(ctx); err != nil {
		return fmt.Errorf("ClickHouse at %s does not answer: %w", db.Address(), err)
	}
	return nil
}

func natsAnswers(ctx context.Context, nc *nats.Conn) error {
	said := make(chan error, 1)
	go func() { // while a connection is made again it holds back all who ask for its state, up to its own bound of 2 s
		if !nc.IsConnected() {
			said <- errors.New("no connection to NATS, trying again")
			return
		}
		err := nc.FlushWithContext(ctx)
		if err != nil {
			err = fmt.Errorf("NATS at %s does not answer: %w", nc.ConnectedAddr(), err)
		}
		said <- err
	}()
	select {
	case err := <-said:
		return err
	case <-ctx.Done():
		return fmt.Errorf("NATS does not answer: %w", ctx.Err())
	}
}

// storedWait is how long WhileStored waits for an answer of a server that may only be busy: one at a tenth of its speed takes well below
// a second.
const storedWait = 5 * time.Second

// storedSoon is how long a caller of WhileStored may take before ClickHouse is asked whether it is there.
const storedSoon = time.Second

// WhileStored returns a context that ends when ClickHouse is asked whether it is there, and does not answer within some seconds. It is for
// callers that have more to do than wait for it. Its cause says what does not answer.
func (r *Reader) WhileStored(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select { // what is answered soon needs no question, each of which is a connection
		case <-ctx.Done():
			return
		case <-time.After(storedSoon):
		}
		ask, done := context.WithTimeout(ctx, storedWait)
		defer done()
		if err := r.answers(ask, ServerClickHouse); err != nil {
			cancel(err)
		}
	}()
	return ctx, func() { cancel(nil) }
}

// withServer returns a context that ends as soon as a server turns out to be away.
func (r *Reader) withServer(ctx context.Context, server string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		if err := r.here(ctx, server); err != nil {
			cancel(foundAway{err})
		}
	}()
	return ctx, func() { cancel(nil) }
}

// foundAway is the cause of a context that ended as a server was asked whether it is there, and was not.
type foundAway struct{ error }

func (f foundAway) Unwrap() error { return f.error }

// ofServer reports whether an error is one of a server that cannot be asked, and not of the request.
func ofServer(err error) bool {
	return err != nil && !errors.Is(err, schemas.ErrUnknownTopic) && !errors.Is(err, schemas.ErrTopicName) && !errors.Is(err, schemas.ErrRequest)
}
