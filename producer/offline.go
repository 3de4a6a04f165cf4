package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/producer/spool"
	"github.com/almanac-events/almanac/schemas"
)

// openSpool takes the topic's directory in SpoolDir.
func openSpool(cfg Config) (*openedSpool, error) {
	o := new(openedSpool)
	o.synced = make(chan struct{}, 1)
	s, err := spool.Open(filepath.Join(cfg.SpoolDir, cfg.Topic), spool.Options{
		MaxBytes: cfg.SpoolBytes, Sync: cfg.SpoolSync, Fault: cfg.Hooks.OnError,
		Synced: func() {
			select {
			case o.synced <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("producer of %q: %w", cfg.Topic, err)
	}
	o.Spool = s
	for _, d := range s.Found() {
		cfg.Hooks.OnError(d)
	}
	text, err := s.Topic()
	if err == nil && text != nil {
		o.topic = new(schemas.Topic)
		if err = json.Unmarshal(text, o.topic); err == nil {
			err = o.topic.Validate()
		}
	}
	if err != nil { // it only spares asking the registry
		o.topic = nil
		cfg.Hooks.OnError(fmt.Errorf("the topic's descriptor in the spool: %w", err))
	}
	return o, nil
}

// openedSpool is a spool and what it knows.
type openedSpool struct {
	*spool.Spool
	topic  *schemas.Topic // as the registry last had it; nil: it was never read
	synced chan struct{}
}

// offlineAfter is how long a start that could do without asks the registry.
const offlineAfter = 2 * time.Second

// newSpooling starts a producer with a spool. When the registry does not answer
// it starts with the topic as the spool knows it, and sends nothing before the
// registry has confirmed that.
func newSpooling(ctx context.Context, nc *nats.Conn, cfg Config, s *openedSpool) (_ *Producer, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	asked := errNotConnected
	var topic schemas.Topic
	if s.topic == nil || nc.IsConnected() {
		ask, cancel := ctx, context.CancelFunc(func() {})
		if s.topic != nil {
			ask, cancel = context.WithTimeout(ctx, offlineAfter)
		}
		topic, asked = readTopic(ask, nc, cfg.Topic)
		cancel()
	}
	switch {
	case asked == nil:
		if err := keepTopic(s.Spool, topic); err != nil {
			return nil, err
		}
	case s.topic == nil:
		return nil, fmt.Errorf("%w (the spool in %s does not know the topic yet: the first start needs the server)", asked, cfg.SpoolDir)
	case errors.Is(asked, schemas.ErrUnknownTopic), errors.Is(asked, schemas.ErrFormat):
		return nil, asked
	default:
		topic = *s.topic
	}
	if err := cfg.fitTopic(&topic); err != nil {
		return nil, err
	}
	p := start(cfg, topic, newNatsLink(nc), withSpool(s.Spool, asked == nil))
	go p.follow(s.synced)
	p.sender.wake() // there may be something to send
	if asked != nil {
		cfg.Hooks.OnError(fmt.Errorf("producer of %q: starting without a server, into the spool: %w", cfg.Topic, asked))
		go p.confirm(nc) //nolint:gosec // G118: it ends with the producer, not with the call that made it
	}
	return p, nil
}

// withSpool gives a producer its spool; confirmed says whether the topic is
// known to be as the registry has it.
func withSpool(s *spool.Spool, confirmed bool) func(*Producer) {
	return func(p *Producer) {
		p.spool = s
		p.confirmed.Store(confirmed)
	}
}

var errNotConnected = errors.New("NATS does not answer")

// follow wakes the sender when the spool made something durable.
func (p *Producer) follow(synced <-chan struct{}) {
	for {
		select {
		case <-synced:
			p.sender.wake()
		case <-p.sender.done:
			return
		}
	}
}

// confirmEvery is the pause between two questions to the registry.
const confirmEvery = time.Second

// confirm asks the registry until the topic is as the producer believes.
func (p *Producer) confirm(nc *nats.Conn) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-p.sender.stop
		cancel()
	}()
	connected := nc.StatusChanged(nats.CONNECTED)
	defer nc.RemoveStatusListener(connected)
	for {
		select {
		case <-pause.C:
		case <-connected:
		case <-p.sender.stop:
			return
		}
		pause.Reset(confirmEvery)
		if !nc.IsConnected() {
			continue
		}
		ask, done := context.WithTimeout(ctx, offlineAfter)
		topic, err := readTopic(ask, nc, p.cfg.Topic)
		done()
		if err == nil {
			err = sameTopic(p.topic, topic)
		}
		if err == nil {
			err = keepTopic(p.spool, topic)
		}
		if err == nil {
			p.confirmed.Store(true)
			p.sender.wake()
			return
		}
		p.cfg.Hooks.OnError(fmt.Errorf("producer of %q: everything stays in the spool: %w", p.cfg.Topic, err))
	}
}

// sameTopic says why frames made under had cannot be sent to a topic that is
// now has, or nil. Fields may have been added.
func sameTopic(had, has schemas.Topic) error {
	switch {
	case had.Kind != has.Kind: // a frame's rows have the columns of its kind
		return fmt.Errorf("%w: topic %q was declared again: it is of kind %s, the spool's frames are of kind %s", schemas.ErrTopicChange, had.Name, has.Kind, had.Kind)
	case !slices.Equal(had.OnceBy, has.OnceBy): // an event's id is made of them
		return fmt.Errorf("%w: topic %q was declared again: its events count once by %v, those of the spool by %v", schemas.ErrTopicChange, had.Name, has.OnceBy, had.OnceBy)
	case had.Lanes != has.Lanes, !slices.Equal(had.LaneBy, has.LaneBy):
		return fmt.Errorf("%w: topic %q was declared again: it has %d lanes by %v, the spool's frames are for %d by %v",
			schemas.ErrTopicChange, had.Name, has.Lanes, has.LaneBy, had.Lanes, had.LaneBy)
	case has.Earlier(had.Version):
		return fmt.Errorf("%w: topic %q was removed and declared again", schemas.ErrTopicChange, had.Name)
	case had.Version > has.Version || !slices.Equal(had.Fields, has.FieldsAt(had.Version)):
		return fmt.Errorf("%w: topic %q was declared again: the fields of its version %d are others than the spool's frames have",
			schemas.ErrTopicChange, had.Name, had.Version)
	}
	return nil
}

// LeaveTopic keeps a topic's descriptor below a spool directory that does not know the
// topic yet, so that the first start with the policy Spool needs no server.
func LeaveTopic(spoolDir string, t schemas.Topic) error {
	text, err := json.Marshal(t)
	if err == nil {
		err = spool.LeaveTopic(filepath.Join(spoolDir, t.Name), text)
	}
	if err != nil {
		return fmt.Errorf("keeping the topic's descriptor for a spool: %w", err)
	}
	return nil
}

func keepTopic(s *spool.Spool, t schemas.Topic) error {
	text, err := json.Marshal(t)
	if err == nil {
		err = s.KeepTopic(text)
	}
	if err != nil {
		return fmt.Errorf("keeping the topic's descriptor in the spool: %w", err)
	}
	return nil
}
