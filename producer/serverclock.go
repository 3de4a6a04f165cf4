package producer

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// serverClock is the NATS server's time as this machine knows it. A router takes an event by that: one whose time lies
// too far ahead of it would be acknowledged, and become a dead letter. Before the first answer it knows nothing.
type serverClock struct {
	ask func(context.Context) (time.Time, error) // nil: nothing can be asked
	now func() int64                             // the machine's clock, unix ns

	last  atomic.Pointer[serverTime] // nil: nothing yet
	woken chan struct{}
}

// serverTime is an answer of the server's.
type serverTime struct {
	server time.Time
	local  int64     // the machine's clock when it came
	came   time.Time // monotonic
}

const (
	// sampleEvery is how often the server's time is asked for, and whether the topic was removed
	// (removed.go). A clock that is set wrong is noticed within it; what was sent until then becomes
	// dead letters. sampleSoon is how often the time is asked for while events are refused by it.
	sampleEvery = time.Minute
	sampleSoon  = time.Second
	// skewTold is the difference of the two clocks that an error speaks of.
	skewTold = time.Minute
)

// askTimeOf asks NATS for its time, by a stream that a producer reads anyway.
func askTimeOf(nc *nats.Conn) func(context.Context) (time.Time, error) {
	return func(ctx context.Context) (time.Time, error) {
		js, err := jetstream.New(nc)
		if err != nil {
			return time.Time{}, err
		}
		s, err := js.Stream(ctx, schemas.KVStream)
		if err != nil {
			return time.Time{}, err
		}
		return s.CachedInfo().TimeStamp, nil
	}
}

// sample asks once.
func (c *serverClock) sample(ctx context.Context) {
	if c.ask == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	server, err := c.ask(ctx)
	if err != nil {
		return // what is known goes on
	}
	c.last.Store(&serverTime{server, c.now(), time.Now()})
}

// follow asks again and again until stop is closed.
func (c *serverClock) follow(stop <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-stop; cancel() }()
	for ctx.Err() == nil {
		if c.last.Load() == nil {
			c.sample(ctx)
		}
		timer := time.NewTimer(sampleEvery)
		select {
		case <-ctx.Done():
		case <-timer.C:
			c.sample(ctx)
		case <-c.woken:
			c.sample(ctx)
			timer.Reset(sampleSoon)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
		}
		timer.Stop()
	}
}

// check reports why a router would refuse an event of time ts by the server's clock. now is the machine's. The server's
// time is told by what passed since its answer on the machine's clock, which may have been set since, and on the
// monotonic one, which stands while the machine sleeps: the later one holds.
func (c *serverClock) check(t *schemas.Topic, ts, now int64) error {
	last := c.last.Load()
	if last == nil {
		return nil
	}
	server := last.server.UnixNano() + now - last.local
	if ts-server <= int64(t.MaxFuture()) {
		return nil
	}
	server = max(server, last.server.Add(time.Since(last.came)).UnixNano())
	if ts-server <= int64(t.MaxFuture()) {
		return nil
	}
	select {
	case c.woken <- struct{}{}:
	default:
	}
	if ahead := time.Duration(now - server); ahead > skewTold {
		return fmt.Errorf("%w: %s is %s ahead of the NATS server's clock, the limit is %s; the clock of this machine is %s ahead of that: set it",
			schemas.ErrTimeTooFarAhead, time.Unix(0, ts).UTC().Format(time.RFC3339), time.Duration(ts-server).Round(time.Second), t.MaxFuture(), ahead.Round(time.Second))
	}
	return fmt.Errorf("%w: %s is %s ahead of the NATS server's clock, the limit is %s",
		schemas.ErrTimeTooFarAhead, time.Unix(0, ts).UTC().Format(time.RFC3339), time.Duration(ts-server).Round(time.Second), t.MaxFuture())
}
