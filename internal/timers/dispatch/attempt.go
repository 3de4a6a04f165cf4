package dispatch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	mrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/timers/dispatch/wheel"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// started is an attempt that has its places.
type started struct {
	run *run
	e   wheel.Entry
	at  place
}

const (
	// fewReads are read one by one, which costs the server less than a batched read.
	fewReads = 16
	// againAfter is when an entry whose record could not be read is looked at again.
	againAfter = 250 * time.Millisecond
	// fullAfter is when a claim that the front had no room for is tried again: something must leave first.
	fullAfter = 5 * time.Second
	// maxMisses is how often a record may be missing in whole answers: its subject was purged.
	maxMisses = 3
	// maxDoublings of answerWait for reads that failed.
	maxDoublings = 3
)

// begin reads the records of due entries and starts their attempts. ctx is the lane's run.
func (d *Dispatcher) begin(ctx, all context.Context, wg *sync.WaitGroup, due []started) {
	failed := uint8(0)
	for i := range due {
		failed = max(failed, due[i].e.Failed)
	}
	records, err := d.readAll(ctx, due, answerWait<<min(failed, maxDoublings))
	if err != nil {
		d.fault(due[0].run.topic, due[0].run.number, err)
	}
	for i := range due {
		s := due[i]
		switch r := records[s.e.Key]; {
		case err != nil:
			s.e.Failed = min(s.e.Failed+1, maxDoublings)
			s.giveBack(ctx, againAfter)
		case r == nil: // an answer may lack what is there
			s.e.Misses++
			if s.e.Misses < maxMisses {
				s.giveBack(ctx, againAfter<<s.e.Misses)
			} else {
				s.release()
			}
		case r.Seq != s.e.Seq: // the newer record is on its way to the wheel, or is there
			s.release()
		default:
			wg.Go(func() { d.attempt(ctx, all, s, r) })
		}
	}
}

func (s *started) release() { s.run.d.limits.release(s.at) }

func (s *started) giveBack(ctx context.Context, after time.Duration) {
	s.release()
	s.run.again(ctx, s.e, after)
}

// readAll reads the records of entries, each answer within a time.
func (d *Dispatcher) readAll(ctx context.Context, due []started, wait time.Duration) (map[string]*timer.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	out := make(map[string]*timer.Record, len(due))
	if len(due) < fewReads {
		for _, s := range due {
			r, err := d.read(ctx, s.e.Key)
			if err != nil {
				return nil, err
			}
			out[s.e.Key] = r
		}
		return out, nil
	}
	subjects := make([]string, len(due))
	for i := range due {
		subjects[i] = due[i].e.Key
	}
	var strange []string
	err := d.w.LastOf(ctx, subjects, func(m *streams.Message) error {
		r, err := parse(m)
		if errors.Is(err, schemas.ErrRecord) {
			strange = append(strange, m.Subject)
			return nil
		}
		out[m.Subject] = r
		return err
	})
	for _, subject := range strange {
		if err == nil {
			out[subject], err = d.read(ctx, subject)
		}
	}
	return out, err
}

// attempt claims a timer, calls it and writes the outcome. What it gives back goes to the lane's run ctx. The
// claim, the call and the outcome belong to the whole dispatcher, so a lane that is handed over does not
// leave a claim behind.
func (d *Dispatcher) attempt(ctx, all context.Context, s started, r *timer.Record) {
	released := false
	defer func() {
		if !released {
			s.release()
		}
	}()
	g, known := d.groups.get(r.Key.Topic, r.Key.Group) // of the record, and nothing that was remembered of it
	spec, err := d.spec(ctx, r)
	if err != nil || !known || g.Paused { // it may have been paused since the attempt got its place
		released = true
		s.giveBack(ctx, againAfter)
		return
	}
	now := d.clock.Passed()
	if r.State() == timer.StatePending && spec != nil && timer.TooLate(r, spec, now) {
		d.tooLate(ctx, s, r, now)
		return
	}
	claimed, wait := d.claim(all, s, r, now)
	if claimed == nil {
		if wait > 0 {
			released = true
			s.giveBack(ctx, wait)
		}
		return
	}
	defer d.flights.remove(claimed.Claim)
	d.cfg.Crash("claimed")
	verdict, call := timer.Outcome{Kind: timer.Fail, Error: timer.ErrSpecMissing}, timer.Call{Error: timer.ErrSpecMissing}
	if spec == nil {
		spec = &timer.Spec{}
	} else if verdict, call, err = d.cfg.Caller.Call(all, &g, claimed, spec); err != nil {
		return // it stays firing, and is called again under the same attempt
	}
	d.cfg.Crash("called")
	outcome := timer.Complete(claimed, verdict, call, g.Policy(spec), d.clock.Passed(), mrand.Float64())
	d.complete(all, s, claimed, &outcome)
}

// spec reads the spec of a record. Nil: the record that held it is gone.
func (d *Dispatcher) spec(ctx context.Context, r *timer.Record) (*timer.Spec, error) {
	if r.Spec != nil {
		return r.Spec, nil
	}
	m, err := streams.DecideAt(ctx, d.js, schemas.StreamTimers, r.SpecAt())
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	from, err := parse(m)
	if err != nil || m.Subject != r.Key.Subject() || from.Life != r.Life {
		return nil, nil
	}
	return from.Spec, nil
}

func (d *Dispatcher) tooLate(ctx context.Context, s started, r *timer.Record, now int64) {
	next := timer.FailTooLate(r, now)
	switch err := d.put(ctx, &next, r.Expect()); {
	case err == nil:
		d.ended(&next)
	case !errors.Is(err, fronts.ErrConflict) || d.stands(ctx, r):
		d.fault(s.run.topic, s.run.number, err)
		s.run.again(ctx, s.e, againAfter)
	}
}

// claim claims the attempt and returns its record. Nil: it is not this dispatcher's to call; wait says when
// to look at it again, 0 for never.
func (d *Dispatcher) claim(ctx context.Context, s started, r *timer.Record, now int64) (claimed *timer.Record, wait time.Duration) {
	self := d.members.Self()
	if r.State() == timer.StateFiring {
		old := time.Unix(0, now).Sub(time.Unix(0, r.Changed)) >= claimWait
		switch {
		case r.Owner == self && d.flights.has(r.Claim): // it is being called, or its outcome waits for NATS
			return nil, time.Second
		case r.Owner == self && !old:
			if !d.flights.adopt(r.Claim) {
				return nil, time.Second
			}
			return r, 0
		case r.Owner != self && !old && slices.Contains(d.members.Live(), r.Owner):
			return nil, time.Second
		}
	} else if r.State() != timer.StatePending {
		return nil, 0
	}
	next := timer.Claim(r, self, newClaim(), now)
	d.flights.add(next.Claim)
	err := d.put(ctx, &next, r.Expect())
	if errors.Is(err, fronts.ErrUnknown) {
		err = d.lookBack(ctx, s, &next, r, err)
	}
	switch {
	case err == nil:
		return &next, 0
	case errors.Is(err, fronts.ErrConflict):
		if d.stands(ctx, r) {
			wait = againAfter
		}
	case errors.Is(err, fronts.ErrFull):
		d.fault(s.run.topic, s.run.number, err)
		wait = fullAfter
	default:
		d.fault(s.run.topic, s.run.number, err)
		wait = againAfter
	}
	d.flights.remove(next.Claim)
	return nil, wait
}

// stands reports whether a record that lost a race is still its timer's newest: what came is not a record, and no one
// else will call the timer.
func (d *Dispatcher) stands(ctx context.Context, r *timer.Record) bool {
	there, err := d.read(ctx, r.Key.Subject())
	return err != nil || there != nil && there.Seq == r.Seq
}

// lookBack finds out what became of a claim without an answer. It returns nil if the claim is stored.
func (d *Dispatcher) lookBack(ctx context.Context, s started, claim, before *timer.Record, why error) error {
	pause := backoff.Backoff{Least: 50 * time.Millisecond, Most: 2 * time.Second}
	for {
		d.fault(s.run.topic, s.run.number, why)
		if err := pause.Wait(ctx); err != nil {
			return err
		}
		there, err := d.read(ctx, claim.Key.Subject())
		switch {
		case err != nil:
			why = err
		case there != nil && there.Claim == claim.Claim:
			claim.Seq = there.Seq
			return nil
		case there != nil && there.Seq == before.Seq:
			return why // not stored yet; it is claimed once more, and one of the two holds
		default:
			return fronts.ErrConflict
		}
	}
}

// complete writes an outcome until it is stored, or another record has taken the claim's place.
func (d *Dispatcher) complete(ctx context.Context, s started, claimed, outcome *timer.Record) {
	pause := backoff.Backoff{Least: 50 * time.Millisecond, Most: 2 * time.Second}
	for expect := claimed.Seq; ; {
		err := d.put(ctx, outcome, expect)
		switch {
		case err == nil:
			d.ended(outcome)
			return
		case errors.Is(err, fronts.ErrConflict):
			there, look := d.read(ctx, claimed.Key.Subject())
			if look == nil && (there == nil || there.Seq != claimed.Seq) { // deleted meanwhile, or claimed by another, or stored without an answer
				return
			}
			if look == nil {
				expect = there.Expect() // what came is not a record
			}
		}
		d.fault(s.run.topic, s.run.number, err)
		if pause.Wait(ctx) != nil {
			return
		}
	}
}

func (d *Dispatcher) ended(r *timer.Record) {
	d.stats.called(r)
	if d.cfg.Hooks.Ended != nil {
		d.cfg.Hooks.Ended(r)
	}
}

func newClaim() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails on the supported systems
	return hex.EncodeToString(b[:])
}
