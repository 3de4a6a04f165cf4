package evaluate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/metric"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query/prometheus/expr"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

const (
	// recordTime bounds the writes of one rule at one instant. A stream that is full or away takes nothing for longer.
	recordTime = 10 * time.Second
	// maxRecordedBytes bounds the series of a rule that are kept from one instant to the next: their labels and as much text again, and
	// seriesBytes each. Of a rule that has more no series is marked as ended.
	maxRecordedBytes = 256 << 10
	seriesBytes      = 64
)

// recorded are the series that a rule has at an instant, with their values, by the text of their labels.
type recorded map[string]sampleOf

// lastRecorded is what a rule recorded last, and what erasures of the topic meant then. A process that takes over does not know it.
type lastRecorded struct {
	recorded recorded
	erased   string
}

// sampleOf is the value of a series. Its labels are without the metric's name.
type sampleOf struct {
	labels labels.Labels
	value  float64
}

// recordedOf are the series of a result under the labels that a rule gives them.
func recordedOf(all promql.Vector, r *alerts.Rule, limit int) (recorded, error) {
	out := make(recorded, len(all))
	return out, eachSeries(all, limit, r.Labels, "under the labels that the rule gives them", func(text string, of labels.Labels, v float64) {
		out[text] = sampleOf{of, v}
	})
}

// ended are the series of the instant before that are gone.
func (now recorded) ended(before recorded) (gone []sampleOf) {
	for text, s := range before {
		if _, there := now[text]; !there {
			gone = append(gone, s)
		}
	}
	return gone
}

// with are the series of two instants. Of one that both have the value is that of now.
func (now recorded) with(before recorded) recorded {
	out := make(recorded, len(now)+len(before))
	maps.Copy(out, before)
	maps.Copy(out, now)
	return out
}

// kept is what the next instant needs of this one: nothing where it is too much.
func (now recorded) kept() recorded {
	size := 0
	for text := range now {
		if size += 2*len(text) + seriesBytes; size > maxRecordedBytes {
			return nil
		}
	}
	return now
}

// pointOf is a sample as an event. points says what it is, where it is not a number or its series ended. The series and the time are its
// identity: one that is written again, by whichever process, counts once.
func pointOf(name string, of labels.Labels, value float64, points string, at int64) (schemas.Event, error) {
	p := metric.Point{Name: name, Points: metric.Gauge, Time: time.Unix(0, at)}
	word := points
	if word == "" {
		p.Value, word = kinds.Number(value)
	}
	if word != "" {
		p.Points = metric.Kind(word)
	}
	of.Range(func(l labels.Label) {
		switch l.Name {
		case schemas.ColService:
			p.Service = l.Value
		case schemas.ColUserID:
			p.Tenant = l.Value
		default:
			p.Labels = append(p.Labels, schemas.String(kinds.LabelKey(l.Name), l.Value))
		}
	})
	return p.Event()
}

// points are the events of an instant: the series that a rule has, and the ends of those that are gone.
func points(r *alerts.Rule, now, before recorded, at int64) ([]schemas.Event, error) {
	out := make([]schemas.Event, 0, len(now))
	for _, s := range now {
		e, err := pointOf(r.Record, s.labels, s.value, "", readAt(r, at))
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	for _, s := range now.ended(before) {
		e, err := pointOf(r.Record, s.labels, 0, kinds.PointsStale, readAt(r, at))
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// recorder writes what the rules of a topic record that are evaluated together.
type recorder struct {
	e     *Evaluator
	topic string
	p     *producer.Producer
	// fresh are metrics that were written and may not be stored yet.
	fresh []string
	// failed is why nothing more is written, or waited for, by these rules at their instants: what holds up one holds up all.
	failed error
	// series are those that were written, by a hash of metric, labels and time: of two samples of one the last would count, in silence.
	series map[uint64]struct{}
	hash   maphash.Hash
	agreed string // the erasures that all who read know of
}

// erasures names the erasures of the topic, with their fences. One that is entered means what was accepted before alone, so who is erased must not be
// written again from what was read, or recorded, earlier.
func (w *recorder) erasures(ctx context.Context) (string, error) {
	all, err := w.e.cfg.Registry.Ledger(ctx, w.topic)
	return meant(all), err
}

// meant names what erasures mean of the messages of EVENTS: a fence is raised once, after its entry.
func meant(all ledger.Erasures) string {
	h := sha256.New()
	for i := range all { // in the order of their fences
		_, _ = fmt.Fprintln(h, all[i].ID, all[i].Fence)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// unseen notes the series of an instant. It is an error where a rule before wrote one of them.
func (w *recorder) unseen(r *alerts.Rule, now recorded, at int64) error {
	if w.series == nil {
		w.series = map[uint64]struct{}{}
	}
	for text := range now {
		if w.wrote(r, text, at) {
			return fmt.Errorf("a rule before it records the series %s%s at the same instant: give one of them another name or label", r.Record, text)
		}
		w.series[w.sum(r, text, at)] = struct{}{}
	}
	return nil
}

// wrote reports whether a rule wrote a series at an instant.
func (w *recorder) wrote(r *alerts.Rule, text string, at int64) bool {
	_, there := w.series[w.sum(r, text, at)]
	return there
}

func (w *recorder) sum(r *alerts.Rule, text string, at int64) uint64 {
	w.hash.Reset()
	_, _ = fmt.Fprint(&w.hash, r.Record, text, readAt(r, at))
	return w.hash.Sum64()
}

// record evaluates a rule that records, and writes what it has.
func (w *recorder) record(ctx context.Context, a *answer) error {
	erased, err := w.erasures(ctx)
	if err != nil {
		return err
	}
	if erased != a.erased { // its series may be of who was erased since, and what is asked goes by a ledger of so long ago
		a.before = nil
		if err := w.agree(ctx, erased); err != nil {
			return err
		}
	}
	now, err := w.e.recorded(ctx, a.rr.rule, a.rr.group.Limit, a.at)
	if err == nil {
		err = w.unseen(a.rr.rule, now, a.at)
	}
	if err != nil {
		return err
	}
	before := maps.Clone(a.before)                                                                        // which the run has too
	maps.DeleteFunc(before, func(text string, _ sampleOf) bool { return w.wrote(a.rr.rule, text, a.at) }) // another rule has the series now
	all, err := points(a.rr.rule, now, before, a.at)
	if err != nil {
		return err
	}
	a.before = nil
	if err := w.still(ctx, erased, "nothing was recorded, and the next instant is"); err != nil {
		return err
	}
	if len(all) > 0 {
		w.fresh = append(w.fresh, a.rr.rule.Record)
		err := w.write(ctx, all)
		if errors.Is(err, context.DeadlineExceeded) { // the stream is full or away; what is refused holds up its own rule alone
			w.failed = err
			w.close() // before the ledger is read: what is stored later could be of who is erased meanwhile
		}
		if err = errors.Join(err, w.still(ctx, erased, w.again())); err != nil {
			a.now, a.erased = now.with(before).kept(), erased // whatever was written of them ends with the others
			return err
		}
		w.e.cfg.Crash("recorded")
	}
	a.wrote, a.now, a.erased = len(now), now.kept(), erased
	return nil
}

// agree waits until all who read know of the erasures that the recorder knows of, once for each set of them.
func (w *recorder) agree(ctx context.Context, erased string) error {
	if w.agreed == erased {
		return nil
	}
	if err := backoff.Sleep(ctx, registry.LedgerStaleness); err != nil {
		return err
	}
	w.agreed = erased
	return nil
}

// still holds that the topic has the same erasures as before. so says what it means where it has not.
func (w *recorder) still(ctx context.Context, erased, so string) error {
	now, err := w.erasures(ctx)
	if err == nil && now != erased {
		err = fmt.Errorf("an erasure was entered meanwhile: %s", so)
	}
	return err
}

// again is what to do where samples were written while an erasure was entered.
func (w *recorder) again() string {
	return fmt.Sprintf("what was recorded may be of whom it names (`almanac erase ls %s`). Once it has ended: `almanac erase %[1]s --user NAME --yes`", w.topic)
}

// recorded asks for what a rule that records has at an instant.
func (e *Evaluator) recorded(ctx context.Context, r *alerts.Rule, limit int, at int64) (now recorded, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	err = e.vector(ctx, r, at, func(v promql.Vector) error {
		now, err = recordedOf(v, r, limit)
		return err
	})
	return now, err
}

// write stores events in the rules' topic. What fails may be stored in part; writing it again changes nothing.
func (w *recorder) write(ctx context.Context, all []schemas.Event) (err error) {
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	if w.p == nil { // of these rules alone: the topic may be removed, and declared again, before the next
		if w.p, err = producer.New(ctx, w.e.cfg.NATS, producer.Config{Topic: w.topic, PrivacyKey: w.e.cfg.PrivacyKey}); err != nil {
			return fmt.Errorf("writing what it records: %w", err)
		}
	}
	var mu sync.Mutex
	var refused []error
	for i := range all {
		err := w.p.Submit(ctx, all[i], func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if err != nil && len(refused) == 0 {
				refused = append(refused, err)
			}
		})
		if err != nil {
			return fmt.Errorf("writing %d samples of %s: %w", len(all), all[i].Type, err)
		}
	}
	err = w.p.Flush(ctx)
	mu.Lock()
	defer mu.Unlock()
	if err = errors.Join(append(refused, err)...); err != nil {
		return fmt.Errorf("writing %d samples of %s: %w", len(all), all[0].Type, err)
	}
	return nil
}

// stored waits until what was recorded can be read, where a rule reads it: the rules of a group are evaluated in their order.
func (w *recorder) stored(ctx context.Context, r *alerts.Rule) error {
	reads := len(w.fresh) > 0 && r.Expr != "" && expr.Reads(r.Expr, w.fresh)
	if w.failed != nil && (reads || r.Record != "") {
		return w.failed
	}
	if !reads {
		return nil
	}
	if w.failed = w.e.waitStored(ctx, w.topic, true); w.failed != nil {
		return w.failed
	}
	w.fresh = nil
	return nil
}

// close gives up what is not stored: the next instant has another.
func (w *recorder) close() {
	if w.p == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = w.p.Close(ctx)
	w.p = nil
}

// tried are series that a try would have recorded, by their rule and labels.
type tried map[string]*alerts.Recorded

// add counts what a rule has at an instant. It reports whether it fits.
func (t tried) add(rr *ruleRun, now recorded, at int64) bool {
	for text, s := range now {
		key := rr.rule.AskedKey(rr.group.Name) + text
		of := t[key]
		if of == nil {
			if len(t) >= maxTriedNotices {
				return false
			}
			of = &alerts.Recorded{Group: rr.group.Name, Record: rr.rule.Record, Topic: rr.rule.Topic, Labels: s.labels.Map()}
			t[key] = of
		}
		of.Samples++
		of.At, of.Value = time.Unix(0, readAt(rr.rule, at)).UTC(), fmt.Sprint(decide.Number(s.value))
	}
	return true
}

// list are they, by group, metric and labels.
func (t tried) list() []alerts.Recorded {
	out := []alerts.Recorded{}
	for _, of := range t {
		out = append(out, *of)
	}
	slices.SortFunc(out, func(a, b alerts.Recorded) int {
		return slices.Compare([]string{a.Group, a.Record, fmt.Sprint(a.Labels)}, []string{b.Group, b.Record, fmt.Sprint(b.Labels)})
	})
	return out
}
