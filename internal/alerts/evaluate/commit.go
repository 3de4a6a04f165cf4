package evaluate

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of an outbox: what one commit writes into the registry beside the alerts.
const (
	maxNotices     = 100
	maxNoticeBytes = 128 << 10
)

// maxAlertBytes bounds the alerts of a topic as JSON: with the outbox they are one message of NATS, of 1 MiB at most.
const maxAlertBytes = 768 << 10

// named is how many bytes an alert has there, within a few: its names, of which JSON makes some bytes six, and its key, sum and times.
func named(n *decide.Notice) int {
	text, _ := json.Marshal(n.Group + n.Rule) // texts always have a JSON form
	return len(text) + alertBytes
}

// bytesOf is how many bytes alerts have there.
func bytesOf(all []decide.Named) (n int) {
	for i := range all {
		n += named(&decide.Notice{Group: all[i].Group, Rule: all[i].Rule})
	}
	return n
}

// alertBytes is what an alert has beside its names: a key of 26, a sum of 64, a state, three times of 19 and the words of JSON.
const alertBytes = 260

// saveTime bounds the write of what was delivered after a round that ran out of time.
const saveTime = 5 * time.Second

// newKey names a transition.
func newKey() string { return rand.Text() }

// commit writes transitions into the job, in parts that fit, and delivers each. from is up to where all is evaluated and
// committed, at the instant of the transitions.
func (r *run) commit(ctx context.Context, from, at int64, made []decide.Notice) error {
	if r.tried != nil {
		if *r.tried = append(*r.tried, slices.DeleteFunc(made, r.take)...); len(*r.tried) > maxTriedNotices {
			return fmt.Errorf("%w: the rules would have said more than %d things: take a later beginning", schemas.ErrRequest, maxTriedNotices)
		}
		return nil
	}
	for len(made) > 0 {
		some, err := fits(made)
		if err != nil {
			return err
		}
		part := made[:some]
		made = made[some:]
		r.state.Decided, r.state.Outbox = from, slices.DeleteFunc(slices.Clone(part), r.take)
		if len(made) == 0 {
			r.state.Decided = at
		}
		if err := r.save(ctx); err != nil {
			return err
		}
		r.e.cfg.Crash("committed")
		if err := r.empty(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fits is how many of some transitions an outbox has, from the first.
func fits(made []decide.Notice) (some int, err error) {
	for size := 0; some < len(made) && some < maxNotices; some++ {
		text, err := json.Marshal(&made[some])
		if err != nil {
			return 0, err
		}
		if size += len(text); some > 0 && size > maxNoticeBytes {
			break
		}
	}
	return some, nil
}

// take enters a transition into the alerts of the state. left: it is beyond their bound, and is not made.
func (r *run) take(n decide.Notice) (left bool) {
	at := slices.IndexFunc(r.state.Alerts, func(a decide.Named) bool { return n.Was != "" && a.Key == n.Was })
	rr := r.of(n.Group, n.Rule)
	switch {
	case n.To == decide.Inactive:
		if at >= 0 {
			r.state.Alerts = slices.Delete(r.state.Alerts, at, at+1)
		}
		if rr != nil && rr.keys[n.Value] == n.Was {
			delete(rr.keys, n.Value)
		}
		return false
	case at < 0 && (len(r.state.Alerts) >= alerts.MaxTopicAlerts || r.bytes+named(&n) > maxAlertBytes):
		delete(rr.alerts, n.Value)
		r.e.cfg.Hooks.Fault(r.topic.Name, fmt.Errorf("%w: the topic has %d alerts of %d bytes, the limits are %d and %d; group %q, rule %q has another", ErrLeftOut, len(r.state.Alerts), r.bytes, alerts.MaxTopicAlerts, maxAlertBytes, n.Group, n.Rule))
		return true
	}
	now := decide.Named{Alert: rr.alerts[n.Value], Group: n.Group, Rule: n.Rule, Sum: rr.rule.Sum(), Key: n.Key}
	if at >= 0 {
		r.state.Alerts[at] = now
	} else {
		r.state.Alerts = append(r.state.Alerts, now)
		r.bytes += named(&n)
	}
	rr.keys[n.Value] = n.Key
	return false
}

// of is the rule of a name; nil: there is none.
func (r *run) of(group, rule string) *ruleRun {
	for _, rr := range r.rules {
		if rr.group.Name == group && rr.rule.Alert == rule {
			return rr
		}
	}
	return nil
}

// save writes the state, if no other process has since it was read.
func (r *run) save(ctx context.Context) error {
	for i := range r.state.Alerts { // when their condition was last met
		a := &r.state.Alerts[i]
		if rr := r.rule(a); rr != nil {
			for value, key := range rr.keys {
				if key == a.Key {
					a.Met = rr.alerts[value].Met
				}
			}
		}
	}
	r.asked()
	text, err := json.Marshal(&r.state)
	if err != nil {
		return err
	}
	r.bytes = bytesOf(r.state.Alerts)
	r.job.State, r.job.UpdatedAt = text, time.Now().UTC()
	if err := r.e.cfg.Registry.SaveJob(ctx, &r.job); err != nil {
		return err
	}
	r.saved = time.Now()
	return nil
}

// empty delivers what the outbox has. Each of its events and timers may be there already, and is then the same one.
func (r *run) empty(ctx context.Context) error {
	if len(r.state.Outbox) == 0 {
		return nil
	}
	for i := range r.state.Outbox {
		n := &r.state.Outbox[i]
		if err := r.e.deliver(ctx, n); err != nil {
			return errors.Join(err, r.delivered(ctx, i))
		}
		if !n.Stored {
			r.e.cfg.Hooks.Changed(n)
		}
	}
	r.e.cfg.Crash("delivered")
	r.state.Outbox = nil
	return r.save(ctx)
}

// delivered takes the first n out of the outbox whose delivery did not come to its end. Each round has roundTime: with servers so slow that
// a full outbox takes longer, each round would deliver the same ones again, and none the last.
func (r *run) delivered(ctx context.Context, n int) error {
	if n == 0 {
		return nil
	}
	r.state.Outbox = slices.Clone(r.state.Outbox[n:])
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveTime)
	defer cancel()
	return r.save(ctx)
}
