package pool

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of the pool. The sum of all: InFlightBytes, and of each producer its buffer
// twice and 1 MiB for each lane.
const (
	// InFlightBytes bounds the decoded bytes of all requests of all inputs. Those of one
	// address other than this machine's may hold half.
	InFlightBytes = 64 << 20
	// MaxProducers bounds the topics that are in use at once.
	MaxProducers = 64
	// BufferBytes is the buffer of each producer: some 40 encoded frames.
	BufferBytes = 4 << 20
	// Hold is how long a request waits for a stream that takes nothing. It lies below
	// the ten seconds that exporters wait for an answer.
	Hold = 8 * time.Second
	// SpaceWait is how long a request waits for other requests' bytes.
	SpaceWait = time.Second
	// AckWait is how long events that were taken may take to be stored before the
	// request is answered without knowing.
	AckWait = 25 * time.Second
)

// Config of a pool. NC, JS and Topic are required.
type Config struct {
	// NC carries the frames of all producers.
	NC *nats.Conn
	// Topic reads a topic's descriptor; an unknown one wraps schemas.ErrUnknownTopic.
	Topic func(ctx context.Context, name string) (schemas.Topic, error)
	// Erased names the erasures of a topic that mean what was accepted up to a sequence of
	// EVENTS or later, and events between two times (unix ns); nil: none is looked for.
	Erased func(ctx context.Context, topic string, seq uint64, from, to int64) (ids []string, err error)
	// PrivacyKey is for topics that hash fields.
	PrivacyKey []byte
	// Follow tells a channel, which has room for one, when topics may have changed, until ctx ends; nil:
	// they are looked at from time to time alone.
	Follow func(ctx context.Context, changed chan<- struct{})
	// Anyone says that nothing is asked of who sends: for a pool that only this process reaches.
	Anyone bool
	// Own are topics that Almanac records in by itself (access.Trail): they take nothing of clients.
	Own []string
	// Storing says why nothing can be stored now, such as a full disk; nil: it is not known
	// before events are sent. It answers at once.
	Storing func() error
	// InFlight is InFlightBytes where 0.
	InFlight int64
	// Hold is Hold where 0.
	Hold time.Duration
	// Hooks tell what becomes of requests.
	Hooks Hooks
	// OnError hears what the producers work around, and what the watch meets.
	OnError func(topic string, err error)
}

// Pool gives events to the stream. It is safe for concurrent use.
type Pool struct {
	cfg   Config
	js    jetstream.JetStream
	bytes *semaphore.Weighted
	held  atomic.Int64 // bytes that requests have
	peers *peers
	// series are those that requests had lately.
	series *seriesTable
	uses   uses

	mu      sync.Mutex
	slots   map[string]*slot
	unknown map[string]unknownTopic
	rates   access.Rates
	past    map[string]producer.Stats // of topics' earlier producers
	leaving map[*slot]bool            // replaced, and not in past yet

	state    state
	draining chan struct{}
	drain    sync.Once
}

// New prepares a pool. Run keeps it true.
func New(cfg Config) (*Pool, error) {
	js, err := jetstream.New(cfg.NC)
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	if cfg.InFlight == 0 {
		cfg.InFlight = InFlightBytes
	}
	if cfg.Storing == nil {
		cfg.Storing = func() error { return nil }
	}
	if cfg.Hold == 0 {
		cfg.Hold = Hold
	}
	if cfg.OnError == nil {
		cfg.OnError = func(string, error) {}
	}
	p := &Pool{
		cfg: cfg, js: js, bytes: semaphore.NewWeighted(cfg.InFlight), peers: newPeers(cfg.InFlight), series: newSeriesTable(SeriesBytes),
		slots: map[string]*slot{}, past: map[string]producer.Stats{}, leaving: map[*slot]bool{}, unknown: map[string]unknownTopic{}, draining: make(chan struct{}),
	}
	p.state.changed = make(chan struct{})
	return p, nil
}

// Run watches the stream and the topics until ctx ends. Then it flushes and closes the
// producers, for at most closeWait.
func (p *Pool) Run(ctx context.Context) error {
	p.watch(ctx)
	p.Drain()
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	return p.close(bye)
}

// closeWait bounds the flush at the end. No request waits for it: what it gives up was
// answered with ErrOutcomeUnknown, or was taken under "ack=none".
const closeWait = 5 * time.Second

// Drain refuses requests from now on.
func (p *Pool) Drain() { p.drain.Do(func() { close(p.draining) }) }

// config is that of a topic's producer.
func (p *Pool) config(topic string) producer.Config {
	return producer.Config{
		Topic: topic, Policy: producer.Block, PrivacyKey: p.cfg.PrivacyKey, BufferBytes: BufferBytes, Stderr: io.Discard,
		Hooks: producer.Hooks{OnError: func(err error) { p.cfg.OnError(topic, err) }},
	}
}
