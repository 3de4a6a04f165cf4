package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// errTopicGone: what waits for the stream is of a topic that was removed.
var errTopicGone = errors.New("the topic was removed")

const (
	// lookAgain is how long after a word of the topic's descriptor the registry is asked once more: the word
	// comes from its writer, and may come before the registry has it.
	lookAgain = 2 * time.Second
	// heldFor bounds how long nothing is sent after a reconnect, while the registry is asked.
	heldFor = 2 * time.Second
)

// removalWatch looks whether the topic was removed: when its descriptor is written, after a reconnect, and each sampleEvery.
type removalWatch struct {
	ask  func(context.Context) (gone bool, err error) // nil: there is no registry
	word chan bool                                    // has room for one; true: hold what is sent until there is an answer
}

// goneOf asks the registry whether the topic that a producer knows was removed. One that the registry lost was not.
func goneOf(nc *nats.Conn, known *schemas.Topic) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		js, err := jetstream.New(nc)
		if err != nil {
			return false, err
		}
		kv, err := js.KeyValue(ctx, schemas.Bucket)
		if err != nil {
			return false, err
		}
		entry, err := kv.Get(ctx, schemas.TopicKey(known.Name))
		if err == nil {
			var t schemas.Topic
			err = json.Unmarshal(entry.Value(), &t)
			return err == nil && t.Earlier(known.Version), err
		}
		if !errors.Is(err, jetstream.ErrKeyNotFound) {
			return false, err
		}
		_, err = kv.Get(ctx, schemas.RemovalKey(known.Name))
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return false, nil
		}
		return err == nil, err
	}
}

// look has the watch ask soon; hold says that nothing is to be sent before.
func (p *Producer) look(hold bool) {
	if p.watch.ask == nil {
		return
	}
	if hold {
		p.paused.Store(true)
	}
	select {
	case p.watch.word <- hold:
	default: // it is about to ask
	}
}

// watchTopic looks until the sender ends, or the topic is gone.
func (p *Producer) watchTopic() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { <-p.sender.stop; cancel() }()
	timer := time.NewTimer(lookAgain) // it may have gone before words of it were heard
	defer timer.Stop()
	for ctx.Err() == nil {
		wait := sampleEvery
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-p.watch.word:
			wait = lookAgain
		}
		asked, done := context.WithTimeout(ctx, heldFor)
		gone, err := p.watch.ask(asked)
		done()
		if gone {
			p.endTopic()
			return
		}
		if err != nil {
			wait = lookAgain
		}
		if p.paused.CompareAndSwap(true, false) {
			p.sender.wake()
		}
		timer.Reset(wait)
	}
}

// endTopic refuses events from now on, and gives up what waits; a spool keeps what it has.
func (p *Producer) endTopic() {
	gone := fmt.Errorf("%w %q: %w. Declare it with `almanac topics apply %s`, then start this program again", schemas.ErrUnknownTopic, p.topic.Name, errTopicGone, p.topic.Name)
	if p.spool != nil {
		p.confirmed.Store(false)
		gone = fmt.Errorf("%w; %s keeps what was spooled", gone, p.cfg.SpoolDir)
	}
	p.gone.Store(&gone)
	p.paused.Store(false)
	p.sender.wake()
	if f := p.cfg.Hooks.OnError; f != nil {
		f(gone)
	}
}

// causeOf is the cause of a drop of an event that was not taken.
func causeOf(err error) string {
	if errors.Is(err, errTopicGone) {
		return CauseTopicRemoved
	}
	return schemas.Reason(err)
}

// giveUpGone gives up what lanes hold of a topic that was removed.
func (s *sender) giveUpGone(err error) {
	for _, l := range s.p.lanes {
		l.mu.Lock()
		for f := range l.window.all {
			s.inFlight--
			s.inFlightBytes -= weigh(len(f.payload))
		}
		l.giveUpAll(CauseTopicRemoved, err, err)
		l.mu.Unlock()
	}
}
