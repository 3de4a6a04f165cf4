package pool

import (
	"errors"
	"time"
)

// Outcome is what became of events.
type Outcome string

// The outcomes.
const (
	Stored   Outcome = "stored"    // the stream has them
	Taken    Outcome = "taken"     // the producer has them; the answer did not wait
	Unknown  Outcome = "unknown"   // they may be stored
	NotTaken Outcome = "not-taken" // none of the request: it may be sent again
	Refused  Outcome = "refused"   // they broke a rule
)

// Outcomes are all there are.
var Outcomes = []Outcome{Stored, Taken, Unknown, NotTaken, Refused}

// Events are those of one request for one topic that became the same.
type Events struct {
	Input   Input
	Topic   string // empty: none was named
	Token   string // name of the sender's; empty: none
	Outcome Outcome
	Count   int
	Bytes   int // 0 where they were refused
}

// Hooks tell what becomes of requests; each may be nil. They are called a few times a request, never with each event, and must not block.
type Hooks struct {
	Events func(*Events)
	// Refused: events broke a rule, by its word.
	Refused func(in Input, reason string, events int)
	// Throttled: nothing of a request was taken for now.
	Throttled func(in Input, reason string)
	// Repeated: the stream had the events of a request already.
	Repeated func(in Input)
}

// Why events of syslog are lost, whose senders get no answers.
const (
	LostBuffer = "buffer-full" // datagrams for which the input had no room
	LostKernel = "kernel-full" // datagrams that the kernel dropped before the input read them
	LostAtEnd  = "lost-at-end" // what was read, and not taken when the input ended
)

// Losses are all such reasons: an alert looks for them.
var Losses = []string{LostBuffer, LostKernel, LostAtEnd}

// Lost tells of events of an input that are gone: their sender cannot send them again.
func (p *Pool) Lost(in Input, topic, reason string, n int) {
	if h := p.cfg.Hooks.Refused; h != nil {
		h(in, reason, n)
	}
	p.tell(&Events{Input: in, Topic: topic, Outcome: Refused, Count: n})
}

func (p *Pool) tell(e *Events) {
	p.uses.note(e, time.Now())
	if h := p.cfg.Hooks.Events; h != nil && e.Count > 0 {
		h(e)
	}
}

// tell tells what became of all events of a request.
func (r *Request) tell(o Outcome) {
	token := ""
	if r.token != nil {
		token = r.token.Name
	}
	for _, t := range r.to {
		r.p.tell(&Events{Input: r.input, Topic: t.slot.topic.Name, Token: token, Outcome: o, Count: t.batch.Len(), Bytes: t.bytes})
	}
}

// outcomeOf is what became of a request that was not stored.
func outcomeOf(err error) Outcome {
	if errors.Is(err, ErrOutcomeUnknown) {
		return Unknown
	}
	return NotTaken
}

// throttled tells of a request that has to be sent again, and returns why.
func (r *Request) throttled(err error) error {
	if h := r.p.cfg.Hooks.Throttled; h != nil && err != nil {
		switch code := Code(err); code {
		case "busy", "stalled", "draining", "rate", "too_many_topics":
			h(r.input, code)
		}
	}
	return err
}
