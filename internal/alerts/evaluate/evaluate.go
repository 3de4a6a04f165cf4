package evaluate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/prometheus"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
)

// Config is what an Evaluator needs. NATS, Registry and Reader are required.
type Config struct {
	NATS     *nats.Conn
	Registry *registry.Registry
	Reader   *query.Reader
	// Owns reports, before each round, whether the rules of a topic are this process's. Default: always.
	Owns func(key string) bool
	// PrivacyKey is of the hashes of the topic alerts, where it has such rules.
	PrivacyKey []byte
	// Every is the time from one round to the next. Default 2 s.
	Every time.Duration

	Hooks Hooks
	// Crash is called at the named points where tests end the process.
	Crash func(point string)
}

// Hooks are told of what happens, of several topics at once; they must not block.
type Hooks struct {
	// Changed: an alert changed its state, and that is committed.
	Changed func(n *decide.Notice)
	// Decided: the rules of a topic are evaluated up to a time.
	Decided func(topic string, rules int, upTo time.Time)
	// Recorded: a rule wrote samples at an instant, or err is why it wrote none or not all.
	Recorded func(topic string, samples int, err error)
	// Fault: the rules of a topic could not be evaluated and will be tried again, or something was left out.
	Fault func(topic string, err error)
}

// Evaluator evaluates rules.
type Evaluator struct {
	cfg Config
	js  jetstream.JetStream
	out outlet // made when the first transition is told
	// away is why ClickHouse is not asked any more in this round; nil: it answers.
	away atomic.Pointer[error]

	mu   sync.Mutex
	runs map[string]*run
	// last is what rules recorded whose run ended before it was loaded again: by topic, and by the key of the rule.
	last map[string]map[string]lastRecorded
	// roundTime, readTime and decideTime are the bounds of these names, or what a test says.
	roundTime, readTime, decideTime time.Duration

	// What rules are asked of. turns bounds how many topics are at once, and asking are they.
	metrics *prometheus.Store
	usage   *usage.Reader
	turns   chan struct{}
	asking  sync.WaitGroup
}

// ErrLeftOut: something of a rule is beyond a bound and is not evaluated.
var ErrLeftOut = errors.New("left out of the rules of alerts")

// Bounds of a round.
const (
	// roundTime is what one topic may take, so that one which hangs does not hold up the others for good.
	roundTime = 30 * time.Second
	// readTime is how long of it frames are read, and decideTime how long instants are evaluated after that. What a round has evaluated that runs out of its time is lost: a topic of a day behind, with
	// rules of many groups, would begin with the same instants each time.
	readTime   = roundTime / 3
	decideTime = roundTime / 3
	// maxAtOnce is how many topics are evaluated at once: each has one frame and one question of a server under way.
	maxAtOnce = 4
)

// New prepares an evaluator.
func New(cfg Config) (*Evaluator, error) {
	if cfg.NATS == nil || cfg.Registry == nil || cfg.Reader == nil {
		return nil, errors.New("alerts: Config.NATS, Config.Registry or Config.Reader is missing")
	}
	if cfg.Every == 0 {
		cfg.Every = 2 * time.Second
	}
	if cfg.Owns == nil {
		cfg.Owns = func(string) bool { return true }
	}
	if cfg.Crash == nil {
		cfg.Crash = func(string) {}
	}
	if cfg.Hooks.Changed == nil {
		cfg.Hooks.Changed = func(*decide.Notice) {}
	}
	if cfg.Hooks.Decided == nil {
		cfg.Hooks.Decided = func(string, int, time.Time) {}
	}
	if cfg.Hooks.Recorded == nil {
		cfg.Hooks.Recorded = func(string, int, error) {}
	}
	if cfg.Hooks.Fault == nil {
		cfg.Hooks.Fault = func(string, error) {}
	}
	js, err := jetstream.New(cfg.NATS)
	if err != nil {
		return nil, err
	}
	return &Evaluator{
		cfg: cfg, js: js, runs: map[string]*run{}, last: map[string]map[string]lastRecorded{}, metrics: prometheus.New(cfg.Reader), usage: usage.New(cfg.Reader), turns: make(chan struct{}, maxAsking), roundTime: roundTime, readTime: readTime, decideTime: decideTime,
	}, nil
}

// Run evaluates until ctx ends.
func (e *Evaluator) Run(ctx context.Context) error {
	defer e.close()
	for {
		if err := e.Round(ctx); err != nil && ctx.Err() == nil {
			e.cfg.Hooks.Fault("", err)
		}
		if backoff.Sleep(ctx, e.cfg.Every) != nil {
			return nil
		}
	}
}

// Round evaluates the rules of each topic that is this process's, up to now. What is known of a topic without rules goes once its alerts have ended:
// rules that are applied to it later would be evaluated at all that came before them.
func (e *Evaluator) Round(ctx context.Context) error {
	groups, err := alerts.Stored(ctx, e.cfg.Registry)
	if err != nil {
		return err
	}
	jobs, err := e.cfg.Registry.Jobs(ctx, schemas.JobAlerts)
	if err != nil {
		return err
	}
	topics := map[string][]bound{}
	for i := range groups {
		for j := range groups[i].Rules {
			r := &groups[i].Rules[j]
			topics[r.Topic] = append(topics[r.Topic], bound{&groups[i], r})
		}
	}
	for i := range jobs {
		if _, ruled := topics[jobs[i].ID]; ruled {
			continue
		}
		var s decide.Topic
		switch {
		case json.Unmarshal(jobs[i].State, &s) == nil && len(s.Alerts)+len(s.Outbox) > 0:
			topics[jobs[i].ID] = nil // its rules were removed
		case e.cfg.Owns(ownedAs(jobs[i].ID)):
			if err := e.cfg.Registry.ForgetJob(ctx, &jobs[i]); err != nil {
				e.cfg.Hooks.Fault(jobs[i].ID, fmt.Errorf("forgetting what is known of a topic without rules: %w", err))
			}
		}
	}
	for _, topic := range e.under() {
		if _, still := topics[topic]; !still {
			e.drop(topic)
		}
	}
	e.forget(topics)
	e.away.Store(nil)
	beside, _ := fanout.WithContext(ctx) // what a topic asks for outlives the round
	beside.SetLimit(maxAtOnce)
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		beside.Go(func() error { return e.evaluate(ctx, topic, topics[topic]) })
	}
	return beside.Wait()
}

// ownedAs names the rules of a topic where processes share their work.
func ownedAs(topic string) string { return "alerts." + topic }

// evaluate evaluates the rules of one topic, if they are this process's. It returns an error only where the round ends.
func (e *Evaluator) evaluate(ctx context.Context, topic string, rules []bound) error {
	if !e.cfg.Owns(ownedAs(topic)) {
		e.drop(topic)
		return nil
	}
	err := e.topic(ctx, topic, rules)
	if err == nil {
		return nil
	}
	e.unload(topic)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !errors.Is(err, errStale) && !errors.Is(err, registry.ErrConflict) { // another process is faster, or it begins again
		e.cfg.Hooks.Fault(topic, err)
	}
	return nil
}

// under are the topics that have a run.
func (e *Evaluator) under() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Keys(e.runs))
}

// run returns a topic's run; nil where it is not under way.
func (e *Evaluator) run(topic string) *run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[topic]
}

// drop forgets a topic's run: what it asks for ends.
func (e *Evaluator) drop(topic string) {
	e.unload(topic)
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.last, topic)
}

// unload ends a topic's run, and remembers what its rules recorded until another is loaded.
func (e *Evaluator) unload(topic string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.runs[topic]
	if r == nil {
		return
	}
	r.end()
	delete(e.runs, topic)
	last := map[string]lastRecorded{}
	for _, rr := range r.rules {
		if rr.recorded != nil {
			last[rr.rule.AskedKey(rr.group.Name)] = rr.lastRecorded
		}
	}
	e.last[topic] = last
}

// forget gives up what rules recorded that are no longer there: of a topic that could not be loaded since, nothing else does.
func (e *Evaluator) forget(topics map[string][]bound) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for topic, last := range e.last {
		there := map[string]bool{}
		for _, b := range topics[topic] {
			there[b.rule.AskedKey(b.group.Name)] = true
		}
		maps.DeleteFunc(last, func(key string, _ lastRecorded) bool { return !there[key] })
		if len(last) == 0 {
			delete(e.last, topic)
		}
	}
}

// enter makes a run that is loaded the topic's. Rules that mean what they did go on from what they recorded.
func (e *Evaluator) enter(topic string, r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, rr := range r.rules {
		rr.lastRecorded = e.last[topic][rr.rule.AskedKey(rr.group.Name)]
	}
	delete(e.last, topic)
	e.runs[topic] = r
}

// close ends all runs.
func (e *Evaluator) close() {
	for _, topic := range e.under() {
		e.drop(topic)
	}
	e.asking.Wait()
	e.out.close()
}

// bound is a rule with its group.
type bound struct {
	group *alerts.Group
	rule  *alerts.Rule
}

// topic evaluates the rules of one topic.
func (e *Evaluator) topic(life context.Context, topic string, rules []bound) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(life, e.roundTime)
	defer cancel()
	sum, err := sumOf(rules)
	if err != nil {
		return err
	}
	r := e.run(topic)
	if r != nil && r.sum != sum {
		e.unload(topic)
	}
	if r == nil || r.sum != sum {
		if r, err = e.load(ctx, topic, rules); err != nil {
			return err
		}
		r.sum = sum
		r.life, r.end = context.WithCancel(life)
		e.enter(topic, r)
	}
	return r.round(ctx, began)
}

// sumOf names all that a run of a topic goes by.
func sumOf(rules []bound) ([sha256.Size]byte, error) {
	var all []any
	for _, b := range rules {
		all = append(all, b.group.Name, b.group.Limit, b.group.Receivers, b.rule)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("alerts: %w", err)
	}
	return sha256.Sum256(text), nil
}
