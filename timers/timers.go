package timers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	archive "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Timers are the timers of one topic. It is safe for concurrent use.
type Timers struct {
	js      jetstream.JetStream
	reg     *registry.Registry
	w       *fronts.Writer
	topic   schemas.Topic
	removed *registry.Guard
	cfg     Config
	// ledger says what is being erased.
	ledger *registry.LedgerCache

	mu     sync.Mutex
	groups map[string]cached

	holdings holdings
}

// Config of Timers.
type Config struct {
	// Archive answers for timers that have left the front; nil: they are not found.
	Archive *archive.Archive
	// Write is how records are written.
	Write fronts.Config
}

// cached is a group as it was read not long ago.
type cached struct {
	timer.Group
	at time.Time
}

const (
	// groupAge is how long a group that was read may be used: its slots never change.
	groupAge = time.Second
	// maxGroups bounds the groups that are remembered; past it all are read again.
	maxGroups = 10_000
	// tries bounds how often a write that lost a race reads again. Each race is lost to another write, and
	// a timer has few writers: who made it, and the dispatcher that has its lane.
	tries = 16
)

// Open binds to a topic of kind timer. registry.ErrNotFound or schemas.ErrUnknownTopic: it does not exist;
// ApplyGroup makes it. fronts.ErrLost: TIMERS lost timers, and takes none before repair has brought them back.
func Open(ctx context.Context, nc *nats.Conn, reg *registry.Registry, topic string, cfg Config) (*Timers, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, err
	}
	w, err := fronts.Open(ctx, js, schemas.StreamTimers, cfg.Write)
	if err != nil {
		return nil, err
	}
	t := &Timers{js: js, reg: reg, w: w, cfg: cfg, ledger: registry.NewLedgerCache(reg), groups: map[string]cached{}}
	read := time.Now()
	t.topic, err = t.look(ctx, topic)
	t.removed = registry.NewGuard(reg, t.topic, read)
	return t, err
}

// look reads a topic of timers, and refuses it while TIMERS lacks timers.
func (t *Timers) look(ctx context.Context, topic string) (schemas.Topic, error) {
	d, err := t.reg.Topic(ctx, topic)
	if err != nil {
		return d, err
	}
	if d.Kind != kinds.Timer {
		return d, fmt.Errorf("%w: topic %q is of kind %s, timers need one of kind %s", schemas.ErrRequest, topic, d.Kind, kinds.Timer)
	}
	topics, err := t.reg.Topics(ctx)
	if err != nil {
		return d, err
	}
	if err := fronts.CheckWhole(ctx, t.js, schemas.StreamTimers, topics); err != nil {
		return d, fmt.Errorf("timers: %w", err)
	}
	return d, nil
}

// Current reports whether the topic is still the one that was opened. What is known of its groups stays then,
// which another Open would have to read again.
func (t *Timers) Current(ctx context.Context) (bool, error) {
	d, err := t.look(ctx, t.topic.Name)
	return err == nil && d.Lanes == t.topic.Lanes && d.First == t.topic.First, err
}

// ApplyGroup declares a group or changes it (registry.AmendTimerGroup), and its topic before it.
func ApplyGroup(ctx context.Context, reg *registry.Registry, topic, name string, f func(*timer.Group) error) (timer.Group, registry.Applied, error) {
	t, err := reg.Topic(ctx, topic)
	switch {
	case errors.Is(err, schemas.ErrUnknownTopic):
		t, err := schemas.NewTopicOf(kinds.Timer, topic), error(nil)
		if _, _, err = reg.Apply(ctx, t, false); err != nil {
			return timer.Group{}, "", err
		}
	case err != nil:
		return timer.Group{}, "", err
	case t.Kind != kinds.Timer:
		return timer.Group{}, "", fmt.Errorf("%w: topic %q is of kind %s, groups need one of kind %s", schemas.ErrRequest, topic, t.Kind, kinds.Timer)
	}
	return reg.AmendTimerGroup(ctx, topic, name, f)
}

// Draft is a timer to create.
type Draft struct {
	Group, ID string
	// Due is when to call; at most timer.MaxPast ago.
	Due     time.Time
	URL     string
	Payload json.RawMessage
	// Bare: the payload alone is the body of a call.
	Bare bool
	// Timeout of a call; 0: the group's.
	Timeout time.Duration
	Retry   *timer.Policy
	// After is how far ahead the due time was asked to be, where it was not asked as a time.
	After time.Duration
	// Moved: the timer was exported. Its due time may have passed, and where a timer of the id was there it is not called again.
	Moved bool
	// MaxLateness: the timer fails if it could only be called later than this; 0: never.
	MaxLateness time.Duration
	// User is whom the timer is about, the handle of an erasure.
	User string
	// Replace lets it take the place of another content.
	Replace bool
}

// Take sets what a change has beside a due time.
func (n *Draft) Take(c Change) {
	if c.URL != nil {
		n.URL = *c.URL
	}
	if c.Payload != nil {
		n.Payload = *c.Payload
	}
	if c.Bare != nil {
		n.Bare = *c.Bare
	}
	if c.Timeout != nil {
		n.Timeout = *c.Timeout
	}
	if c.MaxLateness != nil {
		n.MaxLateness = *c.MaxLateness
	}
	n.Retry = c.Retry
}

// Create schedules a timer. A timer of the same content exists: that one is returned, created is false. Two due times of
// the same length from the moment they were asked at are the same content, so a creation without an answer can be repeated.
// timer.ErrExists: another content has the id.
func (t *Timers) Create(ctx context.Context, n Draft) (tm Timer, created bool, err error) {
	now, err := t.Now(ctx) // the due time is evaluated as it was asked for, however slow the registry is
	if err != nil {
		return tm, false, err
	}
	g, key, err := t.key(ctx, n.Group, n.ID)
	if err != nil {
		return tm, false, err
	}
	due, err := timer.CheckDue(n.Due, now)
	if n.Moved && n.Due.Before(now) {
		due, err = n.Due.UnixNano(), nil
	}
	if err != nil {
		return tm, false, err
	}
	if err := timer.CheckUser(n.User); err != nil {
		return tm, false, err
	}
	want := timer.Draft{Due: due, User: n.User, Replace: n.Replace, Moved: n.Moved, Life: schemas.NewID(now.UnixNano()), Spec: timer.Spec{
		URL: n.URL, Payload: n.Payload, Timeout: n.Timeout, Retry: n.Retry, MaxLateness: n.MaxLateness, After: n.After, Bare: n.Bare,
	}}
	if err := want.Spec.Validate(g.AllowHosts); err != nil {
		return tm, false, err
	}
	// Counted in its group's bound from here on (pending.go), until the create fails. A timer of the same content
	// counts once, by its subject.
	undo, err := t.space(ctx, &g, key, &want.Spec)
	if err != nil {
		return tm, false, err
	}
	defer func() {
		if err != nil {
			undo()
		}
	}()
	// Most ids are new: the first try does not read.
	var prev *timer.Record
	expect := uint64(0)
	for range tries {
		at, err := t.w.Now(ctx)
		if err != nil {
			return tm, false, err
		}
		if want.NotBefore == 0 {
			want.NotBefore = at
		}
		var next timer.Record
		var same bool
		if next, same, err = timer.Create(key, prev, want, at); err != nil {
			return tm, false, err
		}
		if same {
			return view(&next), false, nil
		}
		err = t.put(ctx, prev, &next, expect)
		if err == nil {
			return view(&next), next.Op == timer.Created, nil
		}
		if !errors.Is(err, fronts.ErrConflict) {
			return tm, false, err
		}
		if prev, expect, err = t.last(ctx, key, true); err != nil {
			return tm, false, err
		}
	}
	return tm, false, busy(key)
}

// Now returns the server's time, by which timers are due.
func (t *Timers) Now(ctx context.Context) (time.Time, error) {
	now, err := t.w.Now(ctx)
	return time.Unix(0, now).UTC(), err
}

// Get returns a timer: timer.ErrNotFound when there is none.
func (t *Timers) Get(ctx context.Context, group, id string) (Timer, error) {
	_, key, err := t.key(ctx, group, id)
	if err != nil {
		return Timer{}, err
	}
	r, _, err := t.last(ctx, key, true)
	if err != nil {
		return Timer{}, err
	}
	if r != nil {
		if erased, err := t.hidden(ctx, r); err != nil || erased {
			return Timer{}, cmp.Or(err, noTimer(group, id))
		}
		return view(r), nil
	}
	rows, err := t.stored(ctx, key)
	if err != nil || len(rows) == 0 {
		return Timer{}, cmp.Or(err, noTimer(group, id))
	}
	return fromRows(rows), nil
}

func noTimer(group, id string) error {
	return &timer.Refusal{Code: timer.CodeNotFound, Text: fmt.Sprintf("group %q has no timer %q", group, id)}
}

// stored are the stored transitions of a timer, but those that an erasure under way means; none without an Archive.
func (t *Timers) stored(ctx context.Context, key schemas.TimerKey) ([]Timer, error) {
	if t.cfg.Archive == nil {
		return nil, nil
	}
	under, _, err := t.erasing(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := t.cfg.Archive.TimerHistory(ctx, key, under)
	out := make([]Timer, len(rows))
	for i := range rows {
		out[i] = transition(key, &rows[i])
	}
	return out, err
}

// group reads a group, or uses the one that was read within groupAge.
func (t *Timers) group(ctx context.Context, name string) (timer.Group, error) {
	t.mu.Lock()
	c, ok := t.groups[name]
	t.mu.Unlock()
	if ok && time.Since(c.at) < groupAge {
		return c.Group, nil
	}
	if err := schemas.ValidateTimerGroup(name); err != nil {
		return timer.Group{}, &timer.Refusal{Code: timer.CodeGroup, Text: err.Error()}
	}
	g, err := t.reg.TimerGroup(ctx, t.topic.Name, name)
	if errors.Is(err, registry.ErrNotFound) {
		return g, &timer.Refusal{Code: timer.CodeUnknownGroup, Text: fmt.Sprintf("topic %q has no group %q; make it with `almanac timers groups apply %s`", t.topic.Name, name, name)}
	}
	if err != nil {
		return g, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.groups) >= maxGroups {
		clear(t.groups)
	}
	t.groups[name] = cached{g, time.Now()}
	return g, nil
}

func (t *Timers) key(ctx context.Context, group, id string) (timer.Group, schemas.TimerKey, error) {
	if err := t.removed.Check(ctx); err != nil {
		return timer.Group{}, schemas.TimerKey{}, err
	}
	g, err := t.group(ctx, group)
	if err != nil {
		return g, schemas.TimerKey{}, err
	}
	key, err := g.Key(id, t.topic.Lanes)
	key.First = t.topic.First
	return g, key, err
}

// last reads a timer's newest record, nil where there is none, and its spec if asked. expect is the sequence of the last
// message of its subject, which a write expects.
func (t *Timers) last(ctx context.Context, key schemas.TimerKey, spec bool) (r *timer.Record, expect uint64, err error) {
	r, expect, err = fronts.Newest(ctx, t.w, key.Subject(), parse)
	if err != nil {
		return nil, 0, fmt.Errorf("timers: timer %q of group %q: %w", key.ID, key.Group, err)
	}
	if r == nil {
		return nil, expect, nil
	}
	r.AskedDue = r.Due // unless an earlier record holds the spec: then that one's
	if spec && r.Spec == nil {
		m, err := streams.DecideAt(ctx, t.js, schemas.StreamTimers, r.SpecAt())
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return r, expect, nil
		}
		if err != nil {
			return nil, 0, err
		}
		if from, err := timer.Parse(m.Subject, m.Sequence, m.Header, m.Data); err == nil && m.Subject == key.Subject() {
			r.Spec, r.AskedDue = from.Spec, from.Due
		}
	}
	return r, expect, nil
}

func parse(m *streams.Message) (*timer.Record, error) {
	r, err := timer.Parse(m.Subject, m.Sequence, m.Header, m.Data)
	if err != nil {
		return nil, fmt.Errorf("message %d of %s: %w; another program wrote it", m.Sequence, schemas.StreamTimers, err)
	}
	return &r, nil
}

// put writes the record that follows prev, nil for none, above the message of a sequence.
func (t *Timers) put(ctx context.Context, prev, next *timer.Record, expect uint64) error {
	h, data, err := next.Message()
	if err != nil {
		return err
	}
	next.Seq, err = t.w.Put(ctx, fronts.Record{Subject: next.Key.Subject(), Header: h, Data: data, Expect: expect, For: purposeOf(prev, next)})
	if err == nil {
		err = t.removed.Check(ctx) // free, unless the write stood still: what it left is of no topic then
	}
	return err
}

// purposeOf says how full a record may make the front: a new timer the least, a delete as full as it gets.
func purposeOf(prev, next *timer.Record) fronts.Purpose {
	switch {
	case next.State().Over():
		return fronts.End
	case prev == nil, next.Op == timer.Created:
		return fronts.Grow
	}
	return fronts.Change
}

func busy(key schemas.TimerKey) error {
	return fmt.Errorf("timers: timer %q of group %q changed %d times while it was written: %w; try again", key.ID, key.Group, tries, fronts.ErrConflict)
}
