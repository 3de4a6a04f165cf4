package evaluate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
)

// Bounds of what is asked for.
const (
	// maxAsking is how many topics ClickHouse is asked for at once.
	maxAsking = 2
	// askTime bounds one rule at one instant, usualTime one that asks for each of some days.
	askTime   = 10 * time.Second
	usualTime = time.Minute
	// storedStall is how long is waited for what is accepted and not stored while nothing moves, storedTime how long at most.
	storedStall = 15 * time.Second
	storedTime  = 20 * time.Second
	// batchTime bounds the rules of a topic that are asked at once. With those that are left over the next ones begin.
	batchTime = 2 * time.Minute
	// maxFailureBytes bounds why a rule was not evaluated, as it is kept, and maxFailuresBytes all such texts of a topic.
	maxFailureBytes  = 200
	maxFailuresBytes = 48 << 10
)

// answer is what a rule has at an instant.
type answer struct {
	rr *ruleRun
	at int64
	// samples are those that meet the condition, and others that are known.
	samples map[string]decide.Sample
	// Of a rule that records: what it had at the instant before, and has at this one, and how many series it wrote.
	before, now recorded
	erased      string // the erasures that before, and now, were recorded under
	wrote       int
	took        time.Duration
	err         error
}

// ask begins to ask for the values of the rules that have an instant now. One that was missed is left out: what is asked
// for then would be of what is there by now.
func (r *run) ask(upTo int64) {
	if r.answers != nil {
		return // the last ones are under way
	}
	due := r.due(upTo)
	if len(due) == 0 {
		return
	}
	answers := make(chan []answer, 1)
	r.answers = answers
	known := make([]map[string]bool, len(due)) // read here: the run goes on meanwhile
	for i := range due {
		known[i] = due[i].rr.known()
	}
	r.e.asking.Go(func() { answers <- r.e.answer(r.life, r.topic.Name, due, known) })
}

// due are the rules that have an instant up to a time, those first that were left over.
func (r *run) due(upTo int64) (all []answer) {
	for i := range r.rules {
		rr := r.rules[(r.first+i)%len(r.rules)]
		if at := rr.due(upTo); at > 0 {
			all = append(all, answer{rr: rr, at: at, before: rr.recorded, erased: rr.erased})
		}
	}
	return all
}

// due is the last instant of a rule up to a time, where it was not evaluated there; 0: none.
func (rr *ruleRun) due(upTo int64) int64 {
	if !rr.rule.Asked() {
		return 0
	}
	if at := rr.rule.Last(rr.group.Name, upTo); at > rr.asked.At {
		return at
	}
	return 0
}

// known are the groups that have an alert.
func (rr *ruleRun) known() map[string]bool {
	out := map[string]bool{}
	for group := range rr.alerts {
		out[group] = true
	}
	return out
}

// answer asks for each rule, once all is stored that the topic accepted before.
func (e *Evaluator) answer(ctx context.Context, topic string, due []answer, known []map[string]bool) []answer {
	select {
	case e.turns <- struct{}{}:
		defer func() { <-e.turns }()
	case <-ctx.Done():
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	err := e.waitStored(ctx, topic, false)
	w := recorder{e: e, topic: topic}
	defer w.close()
	inTurn(ctx, due, func(i int) error {
		if err != nil {
			return err
		}
		return e.one(ctx, &w, &due[i], known[i])
	})
	return due
}

// errLeft: the time of a batch was over before a rule had its answer.
var errLeft = fmt.Errorf("the topic's rules took %s together, and this one was left over: the next evaluation begins with those. Make their intervals longer, or their expressions cheaper", batchTime)

// inTurn asks for one rule after the other until ctx ends. Those without an answer by then are left over.
func inTurn(ctx context.Context, due []answer, ask func(i int) error) {
	for i := range due {
		began := time.Now()
		due[i].err = errLeft
		if ctx.Err() == nil {
			due[i].err = ask(i)
		}
		if err := due[i].err; err != nil && !errors.Is(err, errLeft) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			due[i].err = errLeft
			if !errors.Is(err, context.DeadlineExceeded) {
				due[i].err = errors.Join(err, errLeft) // it may be what to do about what was recorded
			}
		}
		due[i].took = time.Since(began)
	}
}

// one asks for a rule at its instant, once it can read what those before it recorded.
func (e *Evaluator) one(ctx context.Context, w *recorder, a *answer, known map[string]bool) (err error) {
	if err := w.stored(ctx, a.rr.rule); err != nil {
		return err
	}
	if a.rr.rule.Record != "" {
		return w.record(ctx, a)
	}
	a.samples, err = e.samples(ctx, a.rr.rule, a.rr.group.Limit, a.at, known)
	return err
}

// waitStored waits until what a topic accepted before the call can be asked for. hurry: sinks are told that it waits.
func (e *Evaluator) waitStored(ctx context.Context, topic string, hurry bool) error {
	ctx, cancel := context.WithTimeout(ctx, storedTime)
	defer cancel()
	wait := e.cfg.Reader.WaitStoredUntold
	if hurry {
		wait = func(ctx context.Context, topics []string, stall time.Duration) (uint64, error) {
			return e.cfg.Reader.WaitStored(ctx, topics, stall, nil)
		}
	}
	pending, err := wait(ctx, []string{topic}, storedStall)
	if err == nil && pending > 0 || errors.Is(err, context.DeadlineExceeded) {
		return errors.New("events that were accepted before are not stored yet: see `almanac lag` and the sinks' logs")
	}
	return err
}

// answered decides by what was asked for, if it is there.
func (r *run) answered(ctx context.Context) error {
	var all []answer
	select {
	case all = <-r.answers: // of nil nothing comes
	default:
		return nil
	}
	r.answers, r.first = nil, 0
	if i := slices.IndexFunc(all, func(a answer) bool { return errors.Is(a.err, errLeft) }); i >= 0 {
		r.first = slices.Index(r.rules, all[i].rr)
	}
	for i := range all {
		if err := r.resolve(ctx, &all[i]); err != nil {
			return err
		}
	}
	return nil
}

// resolve decides about a rule at the instant of its answer.
func (r *run) resolve(ctx context.Context, a *answer) error {
	rr, was := a.rr, a.rr.asked.Error
	rr.asked = decide.Asked{At: a.at, Took: int64(a.took), Recorded: a.wrote}
	if rr.rule.Record != "" {
		r.e.cfg.Hooks.Recorded(r.topic.Name, a.wrote, a.err)
	}
	if a.now != nil { // also of a write that failed
		rr.recorded, rr.erased = a.now, a.erased
	}
	if a.err != nil {
		if rr.asked.Error = failure(a.err); rr.asked.Error != was {
			r.e.cfg.Hooks.Fault(r.topic.Name, fmt.Errorf("group %q, rule %q could not be evaluated at %s, and %s: %w", rr.group.Name, rr.rule.Title(), time.Unix(0, a.at).UTC().Format(time.RFC3339), rr.without(), a.err))
		}
		return nil
	}
	if rr.rule.Record != "" {
		rr.recorded, rr.erased = a.now, a.erased // nil where they are too many
		return nil
	}
	made := rr.decided(r.topic.Name, a)
	if len(made) == 0 {
		return nil
	}
	return r.commit(ctx, r.state.Decided, r.state.Decided, made)
}

// without says what an evaluation that failed means.
func (rr *ruleRun) without() string {
	if rr.rule.Record != "" {
		return "it recorded nothing or not all"
	}
	return "its alerts stay as they are"
}

// decided returns what a rule's alerts become. One whose group is gone no longer meets the condition, with the value that it had last.
func (rr *ruleRun) decided(topic string, a *answer) (made []decide.Notice) {
	for group := range rr.alerts {
		if _, there := a.samples[group]; !there {
			a.samples[group] = decide.Sample{Value: rr.values[group]}
		}
	}
	for _, tr := range rr.decide.Decide(a.at, a.samples, rr.alerts) {
		made = append(made, rr.notice(topic, tr))
	}
	decide.Forget(rr.alerts, a.at)
	rr.values = map[string]float64{}
	for group := range rr.alerts {
		rr.values[group] = a.samples[group].Value
	}
	return made
}

// failure is an error as it is kept.
func failure(err error) string {
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(text) > maxFailureBytes {
		text = strings.ToValidUTF8(text[:maxFailureBytes], "") + "…"
	}
	return text
}

// asked writes into the state how far rules are evaluated whose values are asked for.
func (r *run) asked() {
	left, all := maxFailuresBytes, map[string]decide.Asked{}
	for _, rr := range r.rules {
		if !rr.rule.Asked() {
			continue
		}
		a := rr.asked
		if a.At == 0 { // the run is still being loaded
			if was, known := r.state.Asked[rr.rule.AskedKey(rr.group.Name)]; known {
				a = was
			}
		}
		if left -= 6 * len(a.Error); left < 0 && a.Error != "" { // JSON makes some bytes six
			a.Error = "the log of the process that evaluates says why"
		}
		all[rr.rule.AskedKey(rr.group.Name)] = a
	}
	r.state.Asked = all
}
