package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/alerts/events"
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
	var last []events.Read
	var known map[string]events.Read
	whole := true
	err := r.e.readStored(ctx, func(ctx context.Context) (err error) {
		if last, whole, err = events.Last(ctx, r.e.cfg.Reader, r.topic.Name, from, upTo.Add(maxAhead), maxTransitions, rebuildTime); err == nil && len(last) > 0 {
			known, err = events.ByKey(ctx, r.e.cfg.Reader, r.state.Alerts)
		}
		return err
	})
	if err != nil || len(last) == 0 {
		return err
	}
	if !whole {
		r.e.cfg.Hooks.Fault(r.topic.Name, fmt.Errorf("%w: what was known of its alerts is rebuilt from the newest events of topic %s, %d or those of %s; one that began earlier and goes on is not found", ErrLeftOut, schemas.TopicAlerts, maxTransitions, rebuildTime))
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

// adopt takes the last transitions of alerts in place of what the job has of them; known are the events of that. It returns those of the
// newest instant, whose delivery may have been under way. Nothing up to the last of those that counts made is evaluated again: of an
// alert that ended nothing else is known.
func (r *run) adopt(last []events.Read, known map[string]events.Read) (newest []decide.Notice) {
	for i := range last {
		if rr := r.of(last[i].Names()); rr == nil || !rr.rule.Asked() {
			r.state.Decided = max(r.state.Decided, last[i].Time.UnixNano()/int64(decide.Step)*int64(decide.Step))
		}
	}
	later := map[alert]bool{}
	for i := range last {
		later[alertOf(&last[i])] = true
	}
	kept := r.state.Alerts[:0:0]
	for _, a := range r.state.Alerts {
		of := alert{rule: events.Resource(a.Group, a.Rule)} // that of a rule without By, also where its event is gone
		if e, there := known[a.Key]; there {
			of = alertOf(&e)
		}
		if !later[of] {
			kept = append(kept, a)
		}
	}
	for i := range last {
		e := &last[i]
		n := r.noticeOf(e)
		if e.Time.Equal(last[0].Time) {
			newest = append(newest, n)
		}
		if e.State != decide.Inactive {
			// When its condition was last met is not in its event. It may be as late as this, and then it ends no earlier than it should.
			met := max(n.At, r.state.Decided)
			kept = append(kept, decide.Named{Alert: decide.Alert{State: e.State, Since: n.Since, Met: met, At: n.At}, Group: n.Group, Rule: n.Rule, Sum: n.Sum, Key: n.Key})
		}
	}
	r.state.Alerts, r.bytes = kept, bytesOf(kept)
	return newest
}

// alert tells alerts of a topic apart.
type alert struct{ rule, value string }

func alertOf(e *events.Read) alert { return alert{e.Rule, e.Attrs[events.AttrValue]} }

// noticeOf is a transition as it was delivered, by its event.
func (r *run) noticeOf(e *events.Read) decide.Notice {
	by, value := e.Attrs[events.AttrBy], e.Attrs[events.AttrValue]
	n := decide.Notice{
		Key: e.Key, Topic: r.topic.Name, Sum: e.Attrs[events.AttrSum], By: by, Value: value, User: userOf(by, value), From: decide.State(e.Attrs[events.AttrFrom]), To: e.State,
		At: e.Time.UnixNano(), Since: e.Time.UnixNano(), Reason: e.Attrs[events.AttrReason], Labels: e.Labels(), Annotations: e.Annotations(), Calls: e.Calls(),
	}
	if since, err := time.Parse(time.RFC3339Nano, e.Attrs[events.AttrSince]); err == nil {
		n.Since = since.UnixNano()
	}
	if count, err := strconv.ParseFloat(e.Attrs[events.AttrCount], 64); err == nil {
		n.Count = decide.Number(count)
	}
	n.Group, n.Rule = e.Names()
	if rr := r.of(n.Group, n.Rule); rr != nil && n.Sum == "" && rr.rule.GroupsBy() == by { // an earlier version's events did not say what the rule meant
		n.Sum = rr.rule.Sum()
	}
	return n
}

// tellAgain has receivers told of transitions whose event is there, and whose timers may not be: the registry may have been lost while
// they were delivered. A timer that is there stays as it is.
func (r *run) tellAgain(ctx context.Context, made []decide.Notice) error {
	for i := range made {
		if time.Since(time.Unix(0, made[i].At)) > maxBehind { // none is tried for longer
			continue
		}
		if err := r.e.tell(ctx, &made[i], true); err != nil {
			return err
		}
	}
	return nil
}
