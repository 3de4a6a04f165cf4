package evaluate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/schemas"
)

// Try evaluates groups of rules over what was accepted since a time, as if they had been declared then. The transitions are in the order
// of their instants. It commits and records nothing, and tells no receiver. What it leaves out is in its answer, and Hooks.Fault hears of it.
func Try(ctx context.Context, cfg Config, groups []alerts.Group, since time.Time) (*alerts.Trial, error) {
	var l left
	told := cfg.Hooks.Fault
	cfg.Hooks.Fault = func(topic string, err error) {
		l.add(topic, err)
		if told != nil {
			told(topic, err)
		}
	}
	e, err := New(cfg)
	if err != nil {
		return nil, err
	}
	made, would, err := e.try(ctx, groups, since)
	if err != nil {
		return nil, err
	}
	return &alerts.Trial{Alerts: alerts.Tried(made), Recorded: would.list(), Left: l.all()}, nil
}

// left is what was left out of a try, each once.
type left struct {
	mu    sync.Mutex
	texts []string
	more  int
}

// maxLeft bounds what an answer says was left out.
const maxLeft = 100

func (l *left) add(topic string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := fmt.Sprintf("topic %s: %v", topic, err)
	switch {
	case slices.Contains(l.texts, text):
	case len(l.texts) < maxLeft:
		l.texts = append(l.texts, text)
	default:
		l.more++
	}
}

func (l *left) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append([]string{}, l.texts...)
	if l.more > 0 {
		out = append(out, fmt.Sprintf("and %d more of such", l.more))
	}
	return out
}

// try evaluates groups of rules, and returns what alerts would have become and which series would have been recorded.
func (e *Evaluator) try(ctx context.Context, groups []alerts.Group, since time.Time) ([]decide.Notice, tried, error) {
	topics := map[string][]bound{}
	for i := range groups {
		for j := range groups[i].Rules {
			r := &groups[i].Rules[j]
			topics[r.Topic] = append(topics[r.Topic], bound{&groups[i], r})
		}
	}
	if err := e.triable(groups, since); err != nil {
		return nil, nil, err
	}
	e.away.Store(nil)
	var out []decide.Notice
	would := tried{}
	for _, name := range slices.Sorted(maps.Keys(topics)) {
		if err := e.tryTopic(ctx, name, topics[name], since, &out, would); err != nil {
			return nil, nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b decide.Notice) int { return cmp.Compare(a.At, b.At) })
	return out, would, nil
}

// tryTopic adds the transitions of the rules of a topic to made, and what they would record to would.
func (e *Evaluator) tryTopic(ctx context.Context, topic string, rules []bound, since time.Time, made *[]decide.Notice, would tried) (err error) {
	r := &run{e: e, tried: made, would: would}
	if r.topic, err = e.cfg.Registry.Topic(ctx, topic); err != nil {
		return err
	}
	window := r.bind(rules)
	r.state.Decided = decide.Instant(since.UnixNano())
	if r.at, err = e.firstOf(ctx, r.state.Decided, window); err != nil {
		return err
	}
	upTo, err := e.cfg.Reader.RoutedUpTo(ctx, topic)
	if err != nil {
		return err
	}
	for whole := false; !whole; {
		if whole, err = r.read(ctx, time.Now()); err != nil {
			return err
		}
		points := 0
		for _, rr := range r.rules {
			if rr.series != nil {
				points += rr.series.Points()
			}
		}
		if points > maxTriedPoints {
			return fmt.Errorf("%w: the counts of the rules over that time do not fit: take a later beginning, or fewer rules", schemas.ErrRequest)
		}
	}
	r.sayLeft()
	if err := r.decide(ctx, upTo.UnixNano(), time.Now()); err != nil {
		return err
	}
	return r.tryAsked(ctx, since.UnixNano(), upTo.UnixNano())
}

// maxTried bounds the evaluations of a try whose values are asked for.
const maxTried = 2000

// A try holds its transitions, and the counts of its whole range, which are 16 bytes each.
const (
	maxTriedNotices = 10_000
	maxTriedPoints  = 4 << 20
)

// triable refuses rules that would be asked for too often.
func (e *Evaluator) triable(groups []alerts.Group, since time.Time) error {
	n := 0
	for i := range groups {
		for j := range groups[i].Rules {
			if r := &groups[i].Rules[j]; r.Asked() {
				n += r.Asks() * int(time.Since(since)/time.Duration(r.Interval))
			}
		}
	}
	if n > maxTried {
		return fmt.Errorf("%w: the rules over expressions and meters would be evaluated %d times, the limit is %d: take a later beginning, or a longer interval", schemas.ErrRequest, n, maxTried)
	}
	return nil
}

// tryAsked evaluates the rules whose values are asked for, at each of their instants: over what is stored by now.
func (r *run) tryAsked(ctx context.Context, since, upTo int64) error {
	waited := false // once for all rules: ClickHouse must have what was accepted before the try
	for _, rr := range r.rules {
		if !rr.rule.Asked() {
			continue
		}
		if !waited {
			if err := r.e.waitStored(ctx, r.topic.Name, false); err != nil {
				return err
			}
			waited = true
		}
		last := rr.rule.Last(rr.group.Name, upTo)
		every := int64(rr.rule.Interval)
		for at := last - max(0, last-since)/every*every; at <= last; at += every {
			if rr.rule.Record != "" {
				if err := r.tryRecord(ctx, rr, at); err != nil {
					return err
				}
				continue
			}
			samples, err := r.e.samples(ctx, rr.rule, rr.group.Limit, at, rr.known())
			if err != nil {
				return fmt.Errorf("group %q, rule %q at %s: %w", rr.group.Name, rr.rule.Title(), time.Unix(0, at).UTC().Format(time.RFC3339), err)
			}
			if made := rr.decided(r.topic.Name, &answer{rr: rr, at: at, samples: samples}); len(made) > 0 {
				if err := r.commit(ctx, at, at, made); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// tryRecord notes what a rule would have recorded at an instant.
func (r *run) tryRecord(ctx context.Context, rr *ruleRun, at int64) error {
	now, err := r.e.recorded(ctx, rr.rule, rr.group.Limit, at)
	if err == nil {
		_, err = points(rr.rule, now, nil, at)
	}
	if err != nil {
		return fmt.Errorf("group %q, rule %q at %s: %w", rr.group.Name, rr.rule.Title(), time.Unix(0, at).UTC().Format(time.RFC3339), err)
	}
	if !r.would.add(rr, now, at) {
		return fmt.Errorf("%w: the rules would have recorded more than %d series: take a later beginning, or fewer rules", schemas.ErrRequest, maxTriedNotices)
	}
	return nil
}
