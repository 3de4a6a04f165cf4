package producer

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// NewDiscard starts a producer that does all its work and keeps nothing: each
// laneFrame is encoded, thrown away, and counted as stored. It needs no server. It is
// for an application's own tests and benchmarks. topic is the descriptor that the
// registry would have given; cfg.Topic may be empty.
func NewDiscard(topic schemas.Topic, cfg Config) (*Producer, error) {
	if cfg.Topic == "" {
		cfg.Topic = topic.Name
	}
	cfg, err := cfg.declared()
	if err != nil {
		return nil, err
	}
	if cfg.Policy == Spool {
		return nil, fmt.Errorf("%w: the policy %s: a producer that discards has nothing to spool; use %s", ErrConfig, Spool, Block)
	}
	if topic, err = topic.Declared(); err != nil {
		return nil, err
	}
	return start(cfg, topic, new(discardLink)), nil
}

// discardLink answers every frame at once: what is left is the producer.
type discardLink struct{ s *sender }

func (l *discardLink) start(s *sender) { l.s = s }
func (l *discardLink) publish(ln *lane, f *laneFrame) error {
	l.s.answered(answer{lane: ln.index, seq: f.seq, outcome: stored})
	return nil
}
func (l *discardLink) reconnected() <-chan nats.Status { return nil }
func (l *discardLink) maxPayload() int                 { return discardMaxPayload }
func (l *discardLink) close()                          {}

// discardMaxPayload is a NATS server's own default, 1 MiB.
const discardMaxPayload = 1 << 20
