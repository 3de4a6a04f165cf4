package producer

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Memory stands in for Almanac's servers in the tests of applications. A producer on
// it is the real one: it validates events, applies the topic's rules, bounds its buffer, drops by its
// policy and closes as on a server. Only the frames go to memory, where Events reads
// them. The policy Spool needs servers. It is safe for concurrent use.
//
//	servers := producer.NewMemory(schemas.NewTopic("app"))
//	p, err := servers.Producer(producer.Config{Topic: "app"})
//	… the code under test logs …
//	err = p.Flush(ctx)
//	events := servers.Events()
type Memory struct {
	topic schemas.Topic

	mu     sync.Mutex
	events []Event
	stored map[string]bool // message ids
	away   bool
	links  []*memoryLink
}

// MaxMemoryEvents is how many events a Memory holds. Then it refuses more, as a full
// stream does.
const MaxMemoryEvents = 100_000

// NewMemory returns servers on which the topic is declared.
func NewMemory(topic schemas.Topic) *Memory {
	return &Memory{topic: topic, stored: map[string]bool{}}
}

// Producer starts a producer, as New does with a connection.
func (m *Memory) Producer(cfg Config) (*Producer, error) {
	cfg, err := cfg.declared()
	if err != nil {
		return nil, err
	}
	if cfg.Topic != m.topic.Name {
		return nil, fmt.Errorf("%w %q: this Memory has %q", ErrUnknownTopic, cfg.Topic, m.topic.Name)
	}
	if cfg.Policy == Spool {
		return nil, fmt.Errorf("%w: the policy spool needs servers, a Memory does not have it", ErrConfig)
	}
	topic, err := m.topic.Declared()
	if err == nil {
		err = cfg.fitTopic(&topic)
	}
	if err != nil {
		return nil, err
	}
	link := &memoryLink{m: m, status: make(chan nats.Status, 1)}
	m.mu.Lock()
	m.links = append(m.links, link)
	m.mu.Unlock()
	return start(cfg, topic, link), nil
}

// Events returns the events stored so far, as readers would get them: with ids and
// times, and with the rules applied. Those of one lane are in the order logged.
func (m *Memory) Events() []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

// SetAway makes the servers silent, as in an outage, or brings them back.
func (m *Memory) SetAway(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
	if away {
		return
	}
	for _, l := range m.links {
		select {
		case l.status <- nats.CONNECTED:
		default:
		}
	}
}

var errMemoryFull = errors.New("maximum messages exceeded")

// take stores a frame once; ok is false without an answer.
func (m *Memory) take(l *lane, f *laneFrame) (a answer, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a = answer{lane: l.index, seq: f.seq, outcome: stored}
	id := f.msgID(l)
	switch {
	case m.away:
		return a, false
	case m.stored[id]:
		a.had = 1 // frames have no sequences here
		return a, true
	case len(m.events)+f.head.Rows > MaxMemoryEvents:
		a.outcome, a.err = again, fmt.Errorf("%w: %w", ErrNotStored, errMemoryFull)
		return a, true
	}
	var r frame.Reader
	if err := r.Open(f.payload, &l.p.topic, f.head.Schema); err != nil {
		a.outcome, a.err = again, fmt.Errorf("%w: %w", ErrNotStored, err)
		return a, true
	}
	for i := range r.Rows() {
		m.events = append(m.events, r.Event(i))
	}
	m.stored[id] = true
	return a, true
}

// memoryLink is a producer's way to a Memory.
type memoryLink struct {
	m      *Memory
	s      *sender
	status chan nats.Status
}

func (l *memoryLink) start(s *sender)                 { l.s = s }
func (l *memoryLink) reconnected() <-chan nats.Status { return l.status }
func (l *memoryLink) maxPayload() int                 { return schemas.MaxFrameBytes + headerBytes }
func (l *memoryLink) close()                          {}

func (l *memoryLink) publish(ln *lane, f *laneFrame) error {
	if a, ok := l.m.take(ln, f); ok {
		l.s.answered(a)
	}
	return nil
}
