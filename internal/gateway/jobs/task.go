package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/jsonout"
	"github.com/almanac-events/almanac/internal/registry"
)

// Task is a job under way, in the hands of its worker.
type Task struct {
	r     *Runner
	kind  string
	ctx   context.Context //nolint:containedctx // of the runner: its end puts the job back
	beats chan struct{}
	end   context.CancelCauseFunc

	mu       sync.Mutex
	entry    registry.Job
	job      Job
	progress string
}

// Request reads what was asked for.
func (t *Task) Request(into any) error { return json.Unmarshal(t.job.Request, into) }

// Resume reads what an earlier run saved; false when there is nothing.
func (t *Task) Resume(into any) (bool, error) {
	if len(t.job.Resume) == 0 {
		return false, nil
	}
	return true, json.Unmarshal(t.job.Resume, into)
}

// Save keeps what another gateway needs to go on with the job. Call it before acting by
// what it says.
func (t *Task) Save(ctx context.Context, state any) error {
	text, err := json.Marshal(state)
	if err != nil {
		return err
	}
	t.mu.Lock()
	t.job.Resume = text
	t.mu.Unlock()
	return t.beat(ctx)
}

// Progress says how far the job is; the next beat writes it.
func (t *Task) Progress(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.progress = text
}

// nudge makes the task look at its entry now.
func (t *Task) nudge() {
	select {
	case t.beats <- struct{}{}:
	default:
	}
}

// run lets the worker work, and writes down what comes of it.
func (t *Task) run(w Worker) {
	ctx, end := context.WithCancelCause(t.ctx)
	defer end(nil)
	t.mu.Lock()
	t.end = end
	t.mu.Unlock()
	beating := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(beating)
		tick := time.NewTicker(t.r.cfg.Beat)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			case <-t.beats:
			}
			if err := t.beat(ctx); errors.Is(err, registry.ErrConflict) {
				end(errTaken)
			}
		}
	}()
	var result any
	err := fanout.Call(func() (err error) { // a fault of a job ends it, and not the process
		result, err = w.Work(ctx, t)
		return err
	})
	var broken *fanout.Panic
	if errors.As(err, &broken) {
		t.r.cfg.OnError(errors.New(access.Masked(fmt.Sprintf("job %s: %v\n%s", t.job.ID, err, broken.Stack)))) // a value may quote a request
	}
	close(stop)
	<-beating
	cause := context.Cause(ctx)
	if errors.Is(cause, errTaken) {
		return // the entry is another gateway's
	}
	t.mu.Lock()
	t.outcome(result, err, cause, err != nil && w.Final(err))
	t.mu.Unlock()
	last, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), writeWait)
	defer cancel()
	for {
		err := t.write(last)
		if errors.Is(err, registry.ErrConflict) {
			if t.again(last) {
				continue
			}
			return
		}
		if err != nil {
			t.r.cfg.OnError(err) // it goes on as of a gateway that is gone
		}
		return
	}
}

// outcome sets the state after a run. Caller holds mu.
func (t *Task) outcome(result any, err, cause error, final bool) {
	t.job.Error = ""
	if err != nil {
		t.job.Error = access.Masked(err.Error()) // that of a panic may quote a request
	}
	switch {
	case err == nil:
		t.job.State, t.job.EndedAt, t.job.Progress = Done, now(), ""
		t.job.Result, _ = jsonout.Marshal(result)
	case errors.Is(cause, errCancelled):
		t.job.State, t.job.EndedAt, t.job.Error = Cancelled, now(), ""
	case cause != nil: // the gateway ends
		t.job.State, t.job.Error = Queued, ""
	case !final && t.job.Tries < maxTries:
		t.job.State, t.job.Tries = Queued, t.job.Tries+1
	default:
		t.job.State, t.job.EndedAt = Failed, now()
	}
}

// beat writes the entry, and hears of a wish to cancel.
func (t *Task) beat(ctx context.Context) error {
	for {
		err := t.write(ctx)
		if !errors.Is(err, registry.ErrConflict) || ctx.Err() != nil {
			return err
		}
		if !t.again(ctx) {
			return err
		}
	}
}

// again reads the revision of an entry that changed beside this task; false when another
// gateway has taken the job.
func (t *Task) again(ctx context.Context) bool {
	other, err := t.r.read(ctx, t.job.ID)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil || !other.job.StartedAt.Equal(t.job.StartedAt) {
		return false
	}
	t.entry = other.entry
	if other.job.Cancel && !t.job.Cancel {
		t.job.Cancel, t.job.CancelledBy = true, other.job.CancelledBy
		t.end(errCancelled)
	}
	return true
}

// write writes the entry by its revision.
func (t *Task) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.job.UpdatedAt = now()
	if t.progress != "" && t.job.State == Running {
		t.job.Progress = t.progress
	}
	text, err := json.Marshal(&t.job)
	if err != nil {
		return err
	}
	t.entry.State, t.entry.UpdatedAt, t.entry.Done = text, t.job.UpdatedAt, t.job.State.Ended()
	return t.r.cfg.Registry.SaveJob(ctx, &t.entry)
}
