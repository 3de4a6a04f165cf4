package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// GuardStaleness is how old a Guard's answer may be. It lies well below the 25 s
// after which a removal ends: what is written in between is found and taken.
const GuardStaleness = 5 * time.Second

// guardTime bounds one question of a Guard.
const guardTime = 2 * time.Second

// Guard tells a program that writes records of a topic for long whether the topic was removed since. It is safe for concurrent use.
type Guard struct {
	reg   *Registry
	topic schemas.Topic

	mu   sync.Mutex
	read time.Time // when the last question began
	gone error
}

// NewGuard makes a guard of a topic as its writer read it at some time.
func NewGuard(r *Registry, t schemas.Topic, read time.Time) *Guard {
	return &Guard{reg: r, topic: t, read: read}
}

// Check is schemas.ErrUnknownTopic once the topic was removed, also where its name is another topic's since. While the registry
// does not answer, and where it lost the topic, it is nil.
func (g *Guard) Check(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone != nil || time.Since(g.read) < GuardStaleness {
		return g.gone
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, guardTime)
	defer cancel()
	gone, err := g.reg.isGone(bounded, &g.topic)
	if ctx.Err() != nil {
		return nil // the write's own end
	}
	if g.read = began; err == nil && gone {
		g.gone = fmt.Errorf("%w %q: it was removed; declare it with `almanac topics apply %s`, then open it again", schemas.ErrUnknownTopic, g.topic.Name, g.topic.Name)
	}
	return g.gone
}

// Gone reports what Check found.
func (g *Guard) Gone() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.gone != nil
}

// IfRemoved is err, or, where one of the topics that some work knows was removed since the work read it, that: what was written for it since
// is not kept, whatever was answered. Where the registry does not answer it is err.
func (r *Registry) IfRemoved(ctx context.Context, err error, known ...*schemas.Topic) error {
	if ctx.Err() != nil || errors.Is(err, schemas.ErrUnknownTopic) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, guardTime)
	defer cancel()
	for _, t := range known {
		if gone, asked := r.isGone(ctx, t); asked == nil && gone {
			return removedMeanwhile(t.Name, err)
		}
	}
	return err
}

func removedMeanwhile(topic string, err error) error {
	if err == nil {
		return fmt.Errorf("%w %q: it was removed meanwhile, and nothing more is done for it", schemas.ErrUnknownTopic, topic)
	}
	return fmt.Errorf("%w %q: it was removed meanwhile, and nothing more is done for it: %w", schemas.ErrUnknownTopic, topic, err)
}

// isGone reports whether a topic that a program knows was removed.
func (r *Registry) isGone(ctx context.Context, known *schemas.Topic) (bool, error) {
	var t schemas.Topic
	_, err := r.get(ctx, schemas.TopicKey(known.Name), &t)
	if err == nil {
		return t.Earlier(known.Version), nil
	}
	if !errors.Is(err, ErrNotFound) {
		return false, err
	}
	_, err = r.Removal(ctx, known.Name)
	if errors.Is(err, ErrNotFound) {
		return false, nil // lost, and not removed
	}
	return err == nil, err
}
