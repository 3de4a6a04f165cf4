package evaluate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/alerts/events"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// errStale: what the run was loaded by has changed.
var errStale = errors.New("the rules' topic has changed")

// run is the rules of a topic under way.
type run struct {
	e     *Evaluator
	sum   [32]byte
	topic schemas.Topic
	job   registry.Job
	state decide.Topic
	saved time.Time
	bytes int // of state.Alerts as JSON, at most
	rules []*ruleRun
	where []*filtered
	// at is the sequence of SHARDS from which is read on.
	at uint64
	// known is the last message that was read, and erasures what the ledger's meant then.
	known    schemas.Source
	erasures string
	// tried, when not nil, has transitions that are made, of a run that commits nothing.
	tried *[]decide.Notice
	// would has what it would have recorded.
	would tried
	// first is the rule that is asked for first: one that was left over.
	first int
	// answers are of the rules that are being asked for; nil: none are. end ends that, for good.
	answers chan []answer
	life    context.Context //nolint:containedctx // of what outlives a round
	end     context.CancelFunc
}

// ruleRun is a rule under way.
type ruleRun struct {
	bound
	decide   decide.Rule
	compiled *alerts.Compiled
	series   *decide.Series
	left     uint64 // of series.Left, what was reported
	alerts   map[string]decide.Alert
	keys     map[string]string // of the last transition, by group
	// asked is how far the rule is evaluated, where its values are asked for, and values what its alerts had last.
	asked  decide.Asked
	values map[string]float64
	lastRecorded
}

// maxBehind is how far back is evaluated of what was not: an Almanac that was stopped for longer begins that long ago.
const maxBehind = 24 * time.Hour

// maxAhead is how far instants may lie ahead of what is accepted: the clocks of two servers that lead a stream in turn.
const maxAhead = time.Minute

// load reads what is known of a topic's alerts, and delivers what may not be.
func (e *Evaluator) load(ctx context.Context, topic string, rules []bound) (*run, error) {
	r := &run{e: e}
	job, err := e.cfg.Registry.Job(ctx, schemas.JobAlerts, topic)
	lost := errors.Is(err, registry.ErrNotFound) // or its first rules are new
	switch {
	case lost:
		job.ID, job.Verb = topic, schemas.JobAlerts // with the revision of a key that was deleted: a write without it conflicts each time
	case err != nil:
		return nil, err
	default:
		if err := json.Unmarshal(job.State, &r.state); err != nil {
			return nil, fmt.Errorf("alerts: what is known of topic %s is not readable: %w; `almanac alerts rm` its groups, and apply them again some seconds later", topic, err)
		}
	}
	r.job, r.bytes = job, len(job.State)
	if r.topic, err = e.cfg.Registry.Topic(ctx, topic); err != nil {
		return nil, err
	}
	r.job.For(&r.topic)
	if err := r.empty(ctx); err != nil {
		return nil, err
	}
	window := r.bind(rules)
	upTo, err := e.cfg.Reader.RoutedUpTo(ctx, topic)
	if err != nil {
		return nil, err
	}
	if ahead := time.Unix(0, r.state.Decided).Sub(upTo); ahead > maxAhead {
		e.cfg.Hooks.Fault(topic, fmt.Errorf("%w: instants were evaluated %s ahead of what is accepted, so the clock of NATS was set back; what comes from now on is evaluated", ErrLeftOut, ahead.Round(time.Second)))
		r.state.Decided = decide.Instant(upTo.UnixNano()) - int64(decide.Step)
	}
	if err := r.rebuild(ctx, upTo, lost); err != nil {
		return nil, err
	}
	if first := decide.Instant(upTo.UnixNano()) - 2*int64(decide.Step); r.state.Decided == 0 || r.state.Decided < first-int64(maxBehind) {
		if r.state.Decided > 0 {
			e.cfg.Hooks.Fault(topic, fmt.Errorf("%w: what was accepted between %s and %s ago: nothing was evaluated for so long", ErrLeftOut, time.Unix(0, r.state.Decided).UTC().Format(time.RFC3339), maxBehind))
			first -= int64(maxBehind)
		}
		r.state.Decided = max(r.state.Decided, first)
	}
	if r.late() {
		r.state.Rebuilt = 0
	}
	for _, rr := range r.rules {
		if !rr.rule.Asked() {
			continue
		}
		if rr.asked = r.state.Asked[rr.rule.AskedKey(rr.group.Name)]; rr.asked.At == 0 || rr.asked.At > r.state.Decided {
			rr.asked = decide.Asked{At: r.state.Decided}
		}
	}
	if err := r.alerts(ctx, upTo); err != nil { // which may save
		return nil, err
	}
	if len(r.where) == 0 { // no rule counts
		return r, nil
	}
	r.at, err = e.firstOf(ctx, r.state.Decided, window)
	return r, err
}

// firstOf returns the sequence of SHARDS from which the window of an instant is read. Frames carry the time of the server that led SHARDS then,
// and events of the one that led EVENTS: a clock that was behind the other has stored them before they were accepted. What is read of
// before the window is not counted.
func (e *Evaluator) firstOf(ctx context.Context, instant int64, window time.Duration) (uint64, error) {
	return streams.FirstAfter(ctx, e.js, schemas.StreamShards, time.Unix(0, instant).Add(-window-decide.Step-maxAhead))
}

// bind makes the rules ready, and returns the longest of their windows.
func (r *run) bind(rules []bound) (window time.Duration) {
	for _, b := range rules {
		c, err := b.rule.Compile(&r.topic)
		if err != nil { // as after a field was taken away: the others go on
			r.e.cfg.Hooks.Fault(r.topic.Name, fmt.Errorf("%w: group %q, rule %q: %w; apply it again", ErrLeftOut, b.group.Name, b.rule.Title(), err))
			continue
		}
		rr := &ruleRun{bound: b, decide: b.rule.Decided(), compiled: c, alerts: map[string]decide.Alert{}, keys: map[string]string{}, values: map[string]float64{}}
		r.rules = append(r.rules, rr)
		if b.rule.Asked() {
			continue
		}
		window = max(window, b.rule.Span())
		rr.series = decide.NewSeries(b.rule.Span())
		r.filter(rr)
	}
	return window
}

// alerts gives the alerts that are known to their rules. Those whose rule is no longer there, or means something else, end. After a
// rebuild they wait for it.
func (r *run) alerts(ctx context.Context, upTo time.Time) error {
	if len(r.state.Alerts) == 0 {
		return nil
	}
	var read map[string]events.Read
	err := r.e.readStored(ctx, func(ctx context.Context) (err error) {
		read, err = events.ByKey(ctx, r.e.cfg.Reader, r.state.Alerts)
		return err
	})
	if err != nil {
		return err
	}
	var ended []decide.Notice
	r.state.Alerts = slices.DeleteFunc(r.state.Alerts, func(a decide.Named) bool { // erased, or taken by retention: what they were of is forgotten
		_, there := read[a.Key]
		rr := r.rule(&a)
		return !there && (rr == nil || rr.decide.Grouped)
	})
	for i := range r.state.Alerts {
		a := &r.state.Alerts[i]
		e := read[a.Key]
		rr := r.rule(a)
		if rr != nil { // of a rule without By it is "", also where the event is gone
			value := e.Attrs[events.AttrValue]
			rr.alerts[value], rr.keys[value] = a.Until(r.latest(rr, upTo)), a.Key
			rr.values[value], _ = strconv.ParseFloat(e.Attrs[events.AttrCount], 64) // 0 where the event is gone
			continue
		}
		if r.waits(a) {
			continue
		}
		ended = append(ended, decide.Notice{
			Key: newKey(), Was: a.Key, Topic: r.topic.Name, Group: a.Group, Rule: a.Rule, Sum: a.Sum, By: e.Attrs[events.AttrBy], Value: e.Attrs[events.AttrValue], User: userOf(e.Attrs[events.AttrBy], e.Attrs[events.AttrValue]), From: a.State, To: decide.Inactive,
			At: max(r.state.Decided, a.At+1), Since: a.Since, Reason: "the rule was removed or changed", Labels: e.Labels(), Annotations: e.Annotations(), Calls: e.Calls(),
		})
	}
	if len(ended) == 0 {
		return nil
	}
	return r.commit(ctx, r.state.Decided, r.state.Decided, ended)
}

// latest is how late the times of a rule's alerts may be that are known: its instant may be the next one, since of several commits of that, or of a rebuild, not
// all may be made. Rules that are asked for have instants of their own, and a rebuild goes back for those that count alone.
func (r *run) latest(rr *ruleRun, upTo time.Time) int64 {
	last := r.state.Decided
	if rr.rule.Asked() {
		last = max(last, decide.Instant(upTo.UnixNano()))
	}
	return last + int64(decide.Step)
}

// rule is the rule that a known alert is of; nil: none is that.
func (r *run) rule(a *decide.Named) *ruleRun {
	if rr := r.of(a.Group, a.Rule); rr != nil && rr.rule.Sum() == a.Sum {
		return rr
	}
	return nil
}

// saveEvery is how often is written how far is evaluated, where nothing else is: a run that is loaded again evaluates so much once more.
const saveEvery = 10 * time.Second

// round feeds and evaluates up to now. began is when the topic's time began, of which a load took some.
func (r *run) round(ctx context.Context, began time.Time) error {
	if err := r.empty(ctx); err != nil {
		return err
	}
	upTo, err := r.e.cfg.Reader.RoutedUpTo(ctx, r.topic.Name)
	if err != nil {
		return err
	}
	if time.Unix(0, r.state.Decided).Sub(upTo) > maxAhead {
		return errStale // load goes back
	}
	if r.late() {
		return errStale // load ends the alerts whose rules did not come back
	}
	whole, err := r.read(ctx, began)
	if err != nil {
		return err
	}
	if err := r.answered(ctx); err != nil {
		return err
	}
	r.ask(upTo.UnixNano())
	if whole {
		if err := r.decide(ctx, upTo.UnixNano(), began); err != nil {
			return err
		}
		r.e.cfg.Hooks.Decided(r.topic.Name, len(r.rules), time.Unix(0, r.state.Decided))
	}
	r.sayLeft()
	if time.Since(r.saved) > saveEvery {
		return r.save(ctx)
	}
	return nil
}

// sayLeft reports events that a rule does not count.
func (r *run) sayLeft() {
	for _, rr := range r.rules {
		if rr.series != nil && rr.series.Left > rr.left {
			rr.left = rr.series.Left
			r.e.cfg.Hooks.Fault(r.topic.Name, fmt.Errorf("%w: group %q, rule %q: %d events of more than %d values of %s", ErrLeftOut, rr.group.Name, rr.rule.Title(), rr.left, decide.MaxGroups, rr.rule.By))
		}
	}
}

// decide evaluates each instant up to a time, unix ns, or as many as a round has time for: the next one goes on. A try evaluates all.
func (r *run) decide(ctx context.Context, upTo int64, began time.Time) error {
	for at := r.state.Decided + int64(decide.Step); at <= upTo; at += int64(decide.Step) {
		var made []decide.Notice
		for _, rr := range r.rules {
			if rr.series == nil || rr.series.Groups() == 0 && len(rr.alerts) == 0 && (rr.decide.Grouped || !rr.decide.Condition.Met(0)) {
				continue
			}
			for _, tr := range rr.decide.Decide(at, rr.decide.Sample(rr.series, at, rr.alerts), rr.alerts) {
				made = append(made, rr.notice(r.topic.Name, tr))
			}
			decide.Forget(rr.alerts, at)
		}
		if len(made) > 0 {
			if err := r.commit(ctx, at-int64(decide.Step), at, made); err != nil {
				return err
			}
		}
		r.state.Decided = at
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if r.tried == nil && time.Since(began) >= r.e.readTime+r.e.decideTime {
			return nil
		}
	}
	return nil
}
