package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/alerts/events"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Bounds of a rebuild: how many events of alerts it reads, the newest first, and for how long, that the round does not end before it has
// read them. Beyond, alerts that began earlier are not found, and the log says so.
const (
	maxTransitions = 50_000
	rebuildTime    = roundTime / 2
)

// maxAgain is how far back is evaluated again where it is not known how far was. While the registry was lost no router went on.
const maxAgain = time.Hour

// maxToldAgain is how old a transition may be of which receivers are told again where no timer is there. A timer leaves TIMERS ten
// minutes after it is over: of an older one that is missing it is not known whether it was called. The clocks of two processes may
// be two minutes apart.
const maxToldAgain = 8 * time.Minute

// maxRulesLate is how long after a rebuild an alert waits for its rule: rules come back one group after the other.
const maxRulesLate = 10 * time.Minute

// rebuild makes what is known of a topic's alerts from their events, where the registry lost it, or has it from an older copy. Else
// an alert that fires would be forgotten, or be made once more under another key. upTo is the time of the log.
func (r *run) rebuild(ctx context.Context, upTo time.Time, lost bool) error {
	if !lost {
		if older, err := r.older(ctx, upTo); err != nil || !older {
			return err
		}
	}
	from := time.Time{}
	if !lost {
		from = time.Unix(0, r.state.Decided+1)
	}
	removal, err := r.e.cfg.Registry.Removal(ctx, r.topic.Name)
	switch {
	case errors.Is(err, registry.ErrNotFound):
	case err != nil:
		return err
	case removal.Ended != nil && removal.Ended.After(from): // what was before is of another topic of the name
		from = *removal.Ended
	}
	var last []events.Read
	var known map[string]events.Read
	whole := true
	err = r.e.readStored(ctx, func(ctx context.Context) (err error) {
		if last, whole, err = events.Last(ctx, r.e.cfg.Reader, r.topic.Name, from, upTo.Add(maxAhead), maxTransitions, rebuildTime); err == nil && len(last) > 0 {
			known, err = events.ByKey(ctx, r.e.cfg.Reader, r.state.Alerts)
		}
		return err
	})
	if err != nil {
		return err
	}
	if !whole {
		r.e.cfg.Hooks.Fault(r.topic.Name, fmt.Errorf("%w: what was known of its alerts is rebuilt from the newest events of topic %s, %d or those of %s; one that began earlier and goes on is not found", ErrLeftOut, schemas.TopicAlerts, maxTransitions, rebuildTime))
	}
	if len(last) == 0 {
		return nil
	}
	if lost {
		declared, err := r.declared(ctx)
		if err != nil {
			return err
		}
		first := decide.Instant(upTo.UnixNano()) - 2*int64(decide.Step)
		r.state.Decided = decide.Instant(min(max(declared, first-int64(maxAgain)), first))
	}
	return r.tellAgain(ctx, r.adopt(last, known))
}

// declared is when the last of the rules was, unix ns: no rule is evaluated at what was before.
func (r *run) declared(ctx context.Context) (last int64, err error) {
	groups, err := r.e.cfg.Registry.AlertRules(ctx)
	if err != nil {
		return 0, err
	}
	for i := range groups {
		if slices.ContainsFunc(r.rules, func(rr *ruleRun) bool { return rr.group.Name == groups[i].Group }) {
			last = max(last, groups[i].UpdatedAt.UnixNano())
		}
	}
	return last, nil
}

// older reports whether there are transitions that the job does not know: it is an older copy then. ClickHouse is not asked, so
// that a run can begin without it.
func (r *run) older(ctx context.Context, upTo time.Time) (bool, error) {
	if upTo.Sub(time.Unix(0, r.state.Decided)) > maxBehind {
		return true, nil // SHARDS may no longer have them
	}
	shards, err := streams.Info(ctx, r.e.js, schemas.StreamShards)
	if err != nil {
		return false, err
	}
	if since := time.Unix(0, r.state.Decided).Add(-decide.Step - maxAhead); shards.State.FirstSeq > 1 && (shards.State.Msgs == 0 || shards.State.FirstTime.After(since)) {
		return true, nil // a full disk makes the time shorter that SHARDS has
	}
	t, err := r.e.cfg.Registry.Topic(ctx, schemas.TopicAlerts)
	if errors.Is(err, schemas.ErrUnknownTopic) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	info, err := streams.Info(ctx, r.e.js, schemas.StreamEvents)
	if err != nil {
		return false, err
	}
	routed, err := r.e.cfg.Reader.RoutedUpTo(ctx, schemas.TopicAlerts)
	if err != nil {
		return false, err
	}
	if routed.UnixNano() < streams.EndOf(info).Stored {
		return true, nil // some wait for a router: a query finds them
	}
	from, err := r.e.firstOf(ctx, r.state.Decided, 0)
	if err != nil {
		return false, err
	}
	older := false
	var reader frame.Reader
	err = streams.Gather(ctx, r.e.js, schemas.StreamShards, schemas.ShardsFilter(t.Name), from, nil, func(msg *streams.Message) (bool, error) {
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil || p.Cleared != "" {
			return true, nil //nolint:nilerr // not a frame: verify names what should be one
		}
		if p.Schema > t.Version {
			return false, errStale
		}
		older = reader.Open(msg.Data, &t, p.Schema) == nil && r.unknown(&reader, upTo)
		return !older, nil
	})
	return older, err
}

// unknown reports whether the open frame has a transition of the topic's alerts that the job does not know.
func (r *run) unknown(reader *frame.Reader, upTo time.Time) bool {
	for i := range reader.Rows() {
		if at := reader.Ts(i); at <= r.state.Decided || at > upTo.Add(maxAhead).UnixNano() { // of a clock that was ahead
			continue
		}
		ev := reader.Event(i)
		if key, of := events.Of(&ev); of == r.topic.Name && !slices.ContainsFunc(r.state.Alerts, func(a decide.Named) bool { return a.Key == key }) {
			return true
		}
	}
	return false
}

// tellAgain saves what is adopted, and has receivers told of transitions whose event is there, and whose timers may not be: the registry
// may have been lost while they were delivered. They go through the outbox, so that a round that ends, or a process, leaves none out
// of those that are in it.
func (r *run) tellAgain(ctx context.Context, made []decide.Notice) error {
	made = slices.DeleteFunc(made, func(n decide.Notice) bool {
		return !n.Tells() || len(n.Calls) == 0 || time.Since(time.Unix(0, n.At)) > maxToldAgain
	})
	for i := range made {
		made[i].Stored = true
	}
	for {
		some, err := fits(made)
		if err != nil {
			return err
		}
		r.state.Outbox, made = slices.Clone(made[:some]), made[some:]
		if err := r.save(ctx); err != nil {
			return err
		}
		r.e.cfg.Crash("adopted")
		if err := r.empty(ctx); err != nil {
			if len(made) > 0 {
				r.e.cfg.Hooks.Fault(r.topic.Name, fmt.Errorf("%w: whether receivers were told of %d of its newest transitions is not looked for: the round ended before", ErrLeftOut, len(made)))
			}
			return err
		}
		if len(made) == 0 {
			return nil
		}
	}
}

// waits reports whether an alert waits for its rule to come back, after a rebuild.
func (r *run) waits(a *decide.Named) bool { return r.state.Rebuilt > 0 && r.of(a.Group, a.Rule) == nil }

// late reports whether the time is over in which rules come back.
func (r *run) late() bool {
	return r.state.Rebuilt > 0 && time.Since(time.Unix(0, r.state.Rebuilt)).Abs() > maxRulesLate // a clock may have been set back since
}
