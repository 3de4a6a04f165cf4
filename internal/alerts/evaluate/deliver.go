package evaluate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/alerts/events"
	"github.com/almanac-events/almanac/internal/alerts/forms"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// outlet is how transitions are told. Topics that are evaluated at once share it.
type outlet struct {
	mu     sync.Mutex
	events *producer.Producer
	calls  *timers.Timers
}

// producer returns what stores events, and opens it where it is not.
func (e *Evaluator) producer(ctx context.Context) (*producer.Producer, error) {
	e.out.mu.Lock()
	defer e.out.mu.Unlock()
	if e.out.events == nil {
		p, err := producer.New(ctx, e.cfg.NATS, producer.Config{Topic: schemas.TopicAlerts, PrivacyKey: e.cfg.PrivacyKey})
		if err != nil {
			return nil, err
		}
		e.out.events = p
	}
	return e.out.events, nil
}

// timers returns what tells receivers, and opens it where it is not.
func (e *Evaluator) timers(ctx context.Context) (*timers.Timers, error) {
	e.out.mu.Lock()
	defer e.out.mu.Unlock()
	if e.out.calls == nil {
		tm, err := timers.Open(ctx, e.cfg.NATS, e.cfg.Registry, schemas.TopicAlertCalls, timers.Config{})
		if err != nil {
			return nil, err
		}
		e.out.calls = tm
	}
	return e.out.calls, nil
}

// closeEvents has the next delivery open the topic of events again, which may have been removed and declared since. Where
// another topic's delivery did that meanwhile, p is no longer in use. What was not stored is in the outbox.
func (o *outlet) closeEvents(p *producer.Producer) {
	o.mu.Lock()
	current := o.events == p
	if current {
		o.events = nil
	}
	o.mu.Unlock()
	if current && p != nil {
		closing, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Close(closing)
	}
}

// closeCalls has the next delivery open the topic of timers again, as closeEvents does for that of events.
func (o *outlet) closeCalls(tm *timers.Timers) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls == tm {
		o.calls = nil
	}
}

// close closes both.
func (o *outlet) close() {
	o.mu.Lock()
	p, tm := o.events, o.calls
	o.mu.Unlock()
	o.closeEvents(p)
	o.closeCalls(tm)
}

// deliver stores a transition's event, and has receivers told of it.
func (e *Evaluator) deliver(ctx context.Context, n *decide.Notice) error {
	if n.Stored {
		return e.tell(ctx, n, true)
	}
	if err := e.publish(ctx, n); err != nil {
		return err
	}
	return e.tell(ctx, n, false)
}

// publish stores a transition's event.
func (e *Evaluator) publish(ctx context.Context, n *decide.Notice) error {
	ev, err := events.Event(n)
	if err != nil {
		return err
	}
	p, err := e.producer(ctx)
	if err != nil {
		return err
	}
	switch err := p.Publish(ctx, ev); {
	case refused(err): // and would be each time: receivers are told without it
		e.cfg.Hooks.Fault(n.Topic, fmt.Errorf("%w: that %s is %s is not stored in topic %s: %w", ErrLeftOut, n.Rule, n.To, schemas.TopicAlerts, err))
	case err != nil:
		if ctx.Err() == nil { // else the round ended, and others publish with it
			e.out.closeEvents(p)
		}
		return fmt.Errorf("alerts: storing that %s is %s: %w", n.Rule, n.To, err)
	}
	return nil
}

// tell makes the timers that tell receivers of a transition: with missing, those alone that are not there, be they over.
func (e *Evaluator) tell(ctx context.Context, n *decide.Notice, missing bool) error {
	if !n.Tells() || len(n.Calls) == 0 {
		return nil
	}
	calls, err := e.timers(ctx)
	if err != nil {
		return err
	}
	for _, c := range n.Calls {
		if missing {
			if _, err := calls.Get(ctx, c.Receiver, n.Key); err == nil {
				continue
			} else if !errors.Is(err, timer.ErrNotFound) {
				return fmt.Errorf("alerts: looking whether receiver %s is told that %s is %s: %w", c.Receiver, n.Rule, n.To, err)
			}
		}
		body, bare, err := forms.Body(n, &c)
		if err != nil {
			return err
		}
		if n.Was != "" && n.To != decide.Firing && forms.KeepsState(c.Form) {
			if err := e.withdraw(ctx, calls, c.Receiver, n.Was); err != nil {
				return err
			}
		}
		now, err := calls.Now(ctx) // of each: what the receivers before took must not make it past
		if err != nil {
			return err
		}
		d := timers.Draft{Group: c.Receiver, ID: n.Key, Due: now.Add(soon), After: soon, URL: c.URL, Payload: body, Bare: bare, User: n.User}
		_, _, err = calls.Create(ctx, d)
		if forGood(err) {
			if !errors.Is(err, timer.ErrExists) { // it is over, or has another due time
				e.cfg.Hooks.Fault(n.Topic, fmt.Errorf("%w: receiver %s is not told that %s is %s: %w", ErrLeftOut, c.Receiver, n.Rule, n.To, err))
			}
			continue
		}
		if err != nil {
			e.out.closeCalls(calls)
			return fmt.Errorf("alerts: telling receiver %s that %s is %s: %w", c.Receiver, n.Rule, n.To, err)
		}
	}
	return nil
}

// forGood reports whether a notification is refused whenever it is tried. A full group is not always full, and a due time that was past by then,
// on a slow server, is another the next time.
func forGood(err error) bool {
	refused := (*timer.Refusal)(nil)
	return errors.As(err, &refused) && refused.Code != timer.CodeGroupFull && refused.Code != timer.CodeDuePast
}

// withdraw has a receiver no longer told of a transition that it was not told of yet.
func (e *Evaluator) withdraw(ctx context.Context, calls *timers.Timers, receiver, key string) error {
	_, err := calls.Delete(ctx, receiver, key, timers.Always)
	if refused := (*timer.Refusal)(nil); errors.As(err, &refused) { // it was told, or was never to be
		return nil
	}
	if err != nil {
		e.out.closeCalls(calls)
		return fmt.Errorf("alerts: withdrawing what receiver %s was not told yet: %w", receiver, err)
	}
	return nil
}

// refused reports whether an event can never be stored, as one with more attributes than an event may have.
func refused(err error) bool {
	for _, of := range []error{schemas.ErrTooManyAttrs, schemas.ErrAttrName, schemas.ErrEventTooLarge, schemas.ErrTimeTooFarAhead} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}

// soon is the due time of notifications, from their creation. One that is created again is the same content by it.
const soon = time.Millisecond
