package pool

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/schemas"
)

func TestStalled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		s    sights
		want string
	}{
		"well":                 {sights{connected: true, used: 1 << 20, limit: 1 << 30, oldest: oldFor}, ""},
		"no limit":             {sights{connected: true, used: 1 << 40}, ""},
		"away":                 {sights{}, "NATS does not answer"},
		"full":                 {sights{connected: true, used: 1<<30 - fullMargin + 1, limit: 1 << 30}, "is full"},
		"almost full":          {sights{connected: true, used: 1<<30 - fullMargin, limit: 1 << 30}, ""},
		"a small stream":       {sights{connected: true, used: 90, limit: 100}, ""},
		"a small stream, full": {sights{connected: true, used: 91, limit: 100}, "is full"},
		"unanswered":           {sights{connected: true, oldest: oldFor + 1, topic: "app"}, "of topic app"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := stalled(c.s); (c.want == "") != (got.Kind == None) || !strings.Contains(got.Says, c.want) {
				t.Fatalf("%+v, want %q in it", got, c.want)
			}
		})
	}
}

// bare is a pool without servers.
func bare(inFlight int64, hold time.Duration) *Pool {
	p := &Pool{cfg: Config{InFlight: inFlight, Hold: hold, Storing: func() error { return nil }}, bytes: semaphore.NewWeighted(inFlight), peers: newPeers(inFlight), draining: make(chan struct{})}
	p.state.changed = make(chan struct{})
	return p
}

func TestGrowIsBounded(t *testing.T) {
	t.Parallel()
	p := bare(100, time.Second)
	a, b := p.Begin(InputLines), p.Begin(InputLines)
	if err := a.Grow(t.Context(), 60); err != nil {
		t.Fatal(err)
	}
	if err := b.Grow(t.Context(), 60); !errors.Is(err, ErrBusy) || Status(err) != http.StatusTooManyRequests {
		t.Fatalf("beyond the bound: %v", err)
	}
	if err := a.Grow(t.Context(), 1000); err != nil { // one request may have all there is
		t.Fatal(err)
	}
	a.End()
	if err := b.Grow(t.Context(), 100); err != nil {
		t.Fatalf("after the first ended: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Begin(InputLines).Grow(gone, 1); !errors.Is(err, context.Canceled) {
		t.Fatalf("a client that went away: %v", err)
	}
}

// One address may hold half, so that another's requests find room.
func TestOneAddressLeavesSpace(t *testing.T) {
	t.Parallel()
	p := bare(100, time.Second)
	begin := func(remote string) *Request {
		r := p.Begin(InputLines)
		r.From(PeerOf(remote))
		t.Cleanup(r.End)
		return r
	}
	slow, slower := begin("192.0.2.1:1"), begin("192.0.2.1:2")
	if err := slow.Grow(t.Context(), 50); err != nil {
		t.Fatal(err)
	}
	if err := slower.Grow(t.Context(), 1); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "192.0.2.1") {
		t.Fatalf("beyond what one address may hold: %v", err)
	}
	for _, other := range []string{"192.0.2.2:1", "127.0.0.1:1", "[::1]:1"} {
		r := begin(other)
		if err := r.Grow(t.Context(), 50); err != nil {
			t.Fatalf("%s: %v", other, err)
		}
		r.End()
	}
	slow.End()
	if err := slower.Grow(t.Context(), 1000); err != nil { // one request may have all that its address may
		t.Fatal(err)
	}
	slower.End()
	if len(p.peers.by) != 0 {
		t.Fatalf("%d addresses are remembered without a request", len(p.peers.by))
	}
	if err := begin("127.0.0.1:9").Grow(t.Context(), 100); err != nil {
		t.Fatalf("bytes were not given back: %v", err)
	}
}

func TestReadyHolds(t *testing.T) {
	t.Parallel()
	ctx := access.With(t.Context(), access.Almanac)
	p := bare(100, 50*time.Millisecond)
	p.state.set(Stall{Away, "NATS does not answer"})
	if err := p.Begin(InputLines).Ready(ctx); !errors.Is(err, ErrStalled) || Status(err) != http.StatusServiceUnavailable || RetryAfter(err) == 0 {
		t.Fatalf("stalled for longer than the hold: %v", err)
	}
	long := bare(100, time.Minute)
	long.state.set(Stall{Full, "full"})
	held := make(chan error, 1)
	go func() { held <- long.Begin(InputLines).Ready(ctx) }()
	long.state.set(Stall{Full, "still full"})
	long.state.set(Stall{})
	if err := <-held; err != nil {
		t.Fatalf("it ended within the hold: %v", err)
	}
	long.Drain()
	if err := long.Begin(InputLines).Ready(ctx); !errors.Is(err, ErrDraining) {
		t.Fatalf("draining: %v", err)
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{ErrBusy, 429, "busy"}, {ErrTopics, 429, "too_many_topics"}, {ErrStalled, 503, "stalled"}, {ErrDraining, 503, "draining"},
		{ErrOutcomeUnknown, 503, "outcome_unknown"}, {ErrTooLarge, 413, "too_large"}, {schemas.ErrUnknownTopic, 404, "unknown_topic"},
		{schemas.ErrTopicName, 400, "bad_topic_name"}, {context.Canceled, 503, "failed"}, {&RateError{"a", time.Second}, 429, "rate"},
	} {
		err := fmt.Errorf("because: %w", c.err)
		if Status(err) != c.status || Code(err) != c.code {
			t.Errorf("%v: %d %s, want %d %s", err, Status(err), Code(err), c.status, c.code)
		}
	}
}

// Who may send to no topic is refused before anything is read or waited for; who may send to one is not.
func TestAsked(t *testing.T) {
	t.Parallel()
	p := bare(1<<20, time.Minute)
	p.cfg.Storing = func() error { return errors.New("the disk is full") }
	for _, c := range []struct {
		who    *access.Principal
		status int
	}{
		{access.Anonymous(false), http.StatusUnauthorized},
		{&access.Principal{Name: "r", Grants: []access.Grant{{Role: access.RoleRead, Topics: []string{"app"}}}}, http.StatusForbidden},
		{&access.Principal{Name: "w", Grants: []access.Grant{{Role: access.RoleWrite, Topics: []string{"app"}}}}, http.StatusServiceUnavailable},
		{access.Anonymous(true), http.StatusServiceUnavailable},
	} {
		req := p.Begin(InputLines)
		if err := req.Ready(access.With(t.Context(), c.who)); Status(err) != c.status {
			t.Errorf("%+v: %v", c.who, err)
		}
		req.End()
	}
}

// Topics that Almanac records in by itself take nothing of others, whatever their rights, and also where none are asked for.
func TestOwnTopicsTakeNothingOfClients(t *testing.T) {
	t.Parallel()
	for _, anyone := range []bool{true, false} {
		p := bare(100, time.Second)
		p.slots, p.unknown = map[string]*slot{}, map[string]unknownTopic{}
		p.cfg.Own, p.cfg.Anyone = []string{"reads"}, anyone
		p.cfg.Topic = func(context.Context, string) (schemas.Topic, error) { return schemas.Topic{}, schemas.ErrUnknownTopic }
		for _, who := range []*access.Principal{access.Almanac, {Name: "root", Grants: []access.Grant{{Role: access.RoleAdmin}}}, access.Anonymous(true)} {
			for _, topic := range []string{"reads", schemas.TopicAlerts} {
				r := p.Begin(InputLines)
				_, err := r.To(access.With(t.Context(), who), topic)
				if denied := (*access.Denied)(nil); !errors.As(err, &denied) || !denied.Own || Status(err) != http.StatusForbidden {
					t.Errorf("%q into %s: %v", who.Name, topic, err)
				}
				r.End()
			}
			r := p.Begin(InputLines)
			if _, err := r.To(access.With(t.Context(), who), "app"); !errors.Is(err, schemas.ErrUnknownTopic) {
				t.Errorf("%q into a topic of clients: %v", who.Name, err)
			}
			r.End()
		}
		r := p.Begin(InputAudit)
		if _, err := r.To(access.With(t.Context(), access.Trail), "reads"); !errors.Is(err, schemas.ErrUnknownTopic) {
			t.Errorf("the trail: %v", err)
		}
		r.End()
	}
}
