package pool

import (
	"errors"

	"github.com/almanac-events/almanac/schemas"
)

// refusal is a rule that events of a topic broke.
type refusal struct{ topic, reason string }

// maxRefusals bounds the pairs that a request remembers: topics of its own times rules.
const maxRefusals = 1000

// Refuse notes an event that the input could not take. What Add returns is noted already.
func (r *Request) Refuse(topic string, err error) {
	what := refusal{topic, reasonOf(err)}
	if r.refused == nil {
		r.refused = map[refusal]int{}
	}
	if _, ok := r.refused[what]; ok || len(r.refused) < maxRefusals {
		r.refused[what]++
	}
}

// Refuse is Request.Refuse of the target's topic.
func (t *Target) Refuse(err error) { t.of.Refuse(t.slot.topic.Name, err) }

// reasonOf is the word for a rule.
func reasonOf(err error) string {
	if errors.Is(err, ErrKeyTime) {
		return "no-time"
	}
	if word := schemas.Reason(err); word != "" {
		return word
	}
	return "malformed"
}

// tellRefused tells of the events that broke rules.
func (r *Request) tellRefused() {
	for what, n := range r.refused {
		if h := r.p.cfg.Hooks.Refused; h != nil {
			h(r.input, what.reason, n)
		}
		r.p.tell(&Events{Input: r.input, Topic: what.topic, Outcome: Refused, Count: n})
	}
	r.refused = nil
}
