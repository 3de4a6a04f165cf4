package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

// progress is how far a job is, for those who watch.
type progress struct {
	events, repeated atomic.Uint64
	scanned, total   atomic.Uint64
}

// Progress says how many events a job has replayed, and how many of the about total
// events of its shards this run has seen.
func (j *Job) Progress() (replayed, seen, total uint64) {
	return j.done.events.Load(), j.done.scanned.Load(), j.done.total.Load()
}

// Result is what a run came to.
type Result struct {
	Job   string `json:"job"`
	Topic string `json:"topic"`
	Into  string `json:"into"`
	// Events the job has replayed, all its runs together; Repeated are those of
	// this run that the target had from a run before and did not take again.
	Events   uint64 `json:"events"`
	Repeated uint64 `json:"repeated,omitempty"`
	// Before is the job that replayed the same request into the topic before; its
	// events are not among this one's.
	Before string `json:"before,omitempty"`
	// Same says that the target is the topic itself, so there was nothing to add.
	Same bool `json:"same,omitempty"`
	Done bool `json:"done"`
}

// cursorEvery is how often the cursor is saved, and so how much a writer may get
// again after a kill.
const cursorEvery = time.Second

// endTime bounds the flush and the last cursor of a job that is told to end.
const endTime = 5 * time.Second

// PrintMessages makes a job that prints write each event's message alone, byte for
// byte, and a line end. JSON has U+FFFD for bytes that are not UTF-8.
func (j *Job) PrintMessages() { j.raw = true }

// Run replays until all is done, ctx ends, or something fails. Whichever it is,
// the cursor then says exactly what the sink has; the job can be taken up again.
func (j *Job) Run(ctx context.Context, w io.Writer, pace Pace) (Result, error) {
	if j.spec.Kind == IntoTopic && j.target == nil {
		return Result{Job: j.ID(), Topic: j.topic.Name, Into: j.spec.Into, Same: true, Done: true}, nil
	}
	shards, err := j.plan(ctx)
	if err != nil {
		return j.Result(), err
	}
	out, err := j.sink(ctx, w)
	if err != nil {
		return j.Result(), err
	}
	if err := j.save(ctx, false); err != nil {
		return j.Result(), err
	}
	p := &pacer{Pace: pace}
	if j.spec.Order == ByTime {
		err = j.byTime(ctx, shards, out, p)
	} else {
		err = j.byPosition(ctx, shards, out, p)
	}
	if err == nil { // an answer that was lost is waited for as in the middle of a job
		err = out.flush(ctx)
	}
	known := []*schemas.Topic{&j.topic}
	if j.target != nil {
		known = append(known, &j.target.topic)
	}
	if err = j.r.cfg.Registry.IfRemoved(ctx, err, known...); errors.Is(err, schemas.ErrUnknownTopic) {
		return j.Result(), err // with its job
	}
	// What the sink has taken is made safe and written down, also when it ends early.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), endTime)
	defer cancel()
	if flushed := out.flush(end); flushed != nil {
		return j.Result(), errors.Join(err, flushed)
	}
	if errors.Is(err, registry.ErrConflict) {
		return j.Result(), err // the other run's cursor stands
	}
	err = errors.Join(err, j.save(end, err == nil))
	return j.Result(), err
}

// Result is what the job has come to so far.
func (j *Job) Result() Result {
	return Result{Job: j.ID(), Topic: j.topic.Name, Into: j.spec.Into, Events: j.done.events.Load(), Repeated: j.done.repeated.Load(), Before: j.state.Before, Done: j.entry.Done}
}

// plan is what is left of the job's shards.
func (j *Job) plan(ctx context.Context) ([]*shard, error) {
	shards, err := j.shards(ctx)
	if err != nil {
		return nil, err
	}
	if j.state.At != 0 {
		i := slices.IndexFunc(shards, func(s *shard) bool { return s.ID == j.state.At })
		if i < 0 {
			return nil, fmt.Errorf("%w: shard %s, where job %s stands, is gone", ErrLost, j.state.At, j.ID())
		}
		shards = shards[i:]
	}
	left := shards[:0]
	for _, s := range shards {
		if s.to == 0 {
			continue
		}
		s.at = j.state.Positions[s.ID]
		if (s.at.Number > 0 || s.at.Given != nil) && j.spec.Order == ByTime {
			j.begun = append(j.begun, s)
		}
		if s.at.Number < s.to {
			left = append(left, s)
			j.done.total.Add(s.rows * (s.to - max(s.at.Number, s.from-1)) / (s.to - s.from + 1))
		}
	}
	return left, nil
}

// byPosition replays shard by shard.
func (j *Job) byPosition(ctx context.Context, shards []*shard, out sink, p *pacer) error {
	inside := len(shards) > 0 && shards[0].at.Given != nil // the run before stopped within a position
	st := j.pipe(ctx, shards, renderers, batchFrames, maxAhead, !p.free() || inside || j.spec.Kind == IntoSubject)
	defer st.close()
	var u *unit
	for {
		var err error
		if u, err = st.next(u); err != nil || u == nil {
			return err
		}
		if j.state.At != u.shard.ID {
			j.state.At, j.begun = u.shard.ID, []*shard{u.shard}
		}
		if err := j.before(ctx, u, out); err != nil {
			return err
		}
		if p.free() && u.shard.at.Given == nil && j.spec.Kind != IntoSubject {
			if err := out.unit(ctx, u); err != nil {
				return err
			}
			j.done.events.Add(uint64(u.events))
		} else {
			for i := u.after(u.shard.at.Given); i < len(u.rows); i++ {
				if err := j.event(ctx, u, i, out, p); err != nil {
					return err
				}
				u.shard.at.Given = u.upTo(i)
			}
		}
		j.passed(u)
		if err := j.saveNow(ctx, out); err != nil {
			return err
		}
	}
}

// byTime replays shards merged.
func (j *Job) byTime(ctx context.Context, shards []*shard, out sink, p *pacer) error {
	m, err := j.newMerge(shards)
	if err != nil {
		return err
	}
	defer m.close()
	for {
		o, err := m.next(ctx)
		if err != nil || o == nil {
			return err
		}
		if err := j.before(ctx, o.unit, out); err != nil {
			return err
		}
		if err := j.event(ctx, o.unit, o.at, out, p); err != nil {
			return err
		}
		if err := m.advance(o); err != nil {
			return err
		}
		if err := j.saveNow(ctx, out); err != nil {
			return err
		}
	}
}

// event gives the sink an entry of a unit when it is due.
func (j *Job) event(ctx context.Context, u *unit, i int, out sink, p *pacer) error {
	if !p.free() {
		clock := j.r.cfg.Clock
		now := clock.Now()
		if at := p.due(u.rows[i].ts, u.rows[i].events, now); at.After(now) {
			if err := out.flush(ctx); err != nil {
				return err
			}
			// A long wait keeps the cursor fresh first.
			if at.Sub(now) > cursorEvery {
				if err := j.saveNow(ctx, out); err != nil {
					return err
				}
			}
			if err := clock.Wait(ctx, at); err != nil {
				return err
			}
		}
	}
	if err := out.event(ctx, u, i); err != nil {
		return err
	}
	j.done.events.Add(uint64(u.rows[i].events))
	return nil
}

// before keeps what a topic was sent and the cursor does not know within what the
// router remembers of a producer.
func (j *Job) before(ctx context.Context, u *unit, out sink) error {
	if j.target == nil {
		return nil
	}
	s := u.shard
	if s.unsaved > 0 && u.end.Number-s.unsaved >= schemas.MaxInFlight {
		if err := out.flush(ctx); err != nil {
			return err
		}
		if err := j.save(ctx, false); err != nil {
			return err
		}
	}
	if s.unsaved == 0 {
		s.unsaved = u.end.Number
	}
	return nil
}

// passed says that the sink has taken a unit.
func (j *Job) passed(u *unit) {
	u.shard.at = u.end
	j.done.scanned.Add(uint64(u.expected))
}

// saveNow saves the cursor when it is time.
func (j *Job) saveNow(ctx context.Context, out sink) error {
	if j.r.cfg.Clock.Now().Sub(j.saved) < cursorEvery {
		return nil
	}
	if err := out.flush(ctx); err != nil {
		return err
	}
	return j.save(ctx, false)
}

// Remember writes a job down that was not run yet, so that Resume finds it.
func (j *Job) Remember(ctx context.Context) error { return j.save(ctx, false) }

// save writes the cursor: what the sink has made safe.
func (j *Job) save(ctx context.Context, done bool) error {
	now := j.r.cfg.Clock.Now()
	j.state.Events = j.done.events.Load()
	if len(j.begun) > 0 || done {
		j.state.Positions = make(map[schemas.Shard]position, len(j.begun))
		for _, s := range j.begun {
			j.state.Positions[s.ID], s.unsaved = s.at, 0
		}
	}
	if done {
		j.state.Positions, j.state.At = nil, 0
	}
	var err error
	if j.entry.State, err = json.Marshal(&j.state); err != nil {
		return err
	}
	j.entry.UpdatedAt, j.entry.Done, j.saved = now.UTC(), done, now
	return j.r.cfg.Registry.SaveJob(ctx, &j.entry)
}

func (s *state) read(data []byte) error { return json.Unmarshal(data, s) }

// jobID says whether a text is a job's id.
func jobID(s string) bool {
	_, err := schemas.ParseShard(s)
	return err == nil
}

func missingJob(id string, err error) error {
	if errors.Is(err, registry.ErrNotFound) {
		return refuse(ErrNoJob, "%s; the last %d are remembered", id, registry.MaxJobs)
	}
	return err
}

func isoTime(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339) }
