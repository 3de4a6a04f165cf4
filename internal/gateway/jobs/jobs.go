package jobs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/registry"
)

// Bounds of jobs.
const (
	// MaxRunning jobs run at once in a gateway.
	MaxRunning = 2
	// MaxQueued jobs wait at most, of all gateways.
	MaxQueued = 50
	// beatEvery is how often a running job writes its entry.
	beatEvery = 3 * time.Second
	// goneAfter is how long an entry stays the same before its gateway counts as gone.
	goneAfter = 15 * time.Second
	// lookEvery is how often a gateway looks for jobs that no gateway runs.
	lookEvery = 5 * time.Second
	// maxTries is how often a job is begun again after an error of the servers.
	maxTries = 5
	// writeWait bounds a write of an entry.
	writeWait = 10 * time.Second
)

// verb of the entries in the registry.
const verb = "http"

// State of a job.
type State string

// The states; see the package's text.
const (
	Queued    State = "queued"
	Running   State = "running"
	Done      State = "done"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Ended reports whether a job stays as it is.
func (s State) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// Job is a long work and how far it is.
type Job struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Topic string `json:"topic"`
	State State  `json:"state"`
	// Request is what was asked for, as the kind has it.
	Request json.RawMessage `json:"request"`
	// By is the name of the token that asked, and CancelledBy of the one that cancelled it; empty: it was done without one.
	By          string `json:"by,omitempty"`
	CancelledBy string `json:"cancelled_by,omitempty"`

	CreatedAt time.Time `json:"created_at"`
	StartedAt time.Time `json:"started_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"`
	// Progress is how far a running job is, in words.
	Progress string `json:"progress,omitempty"`
	// Result is what a job came to that is done, as the kind has it.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is why a job failed, or what it last tried again for.
	Error string `json:"error,omitempty"`
	Tries int    `json:"tries,omitempty"`
	// Cancel asks the gateway that runs the job to end it.
	Cancel bool `json:"cancel,omitempty"`
	// Resume is what the worker needs to go on with the job.
	Resume json.RawMessage `json:"resume,omitempty"`
}

// Worker does the work of a kind, and returns what it came to. An error for which Final
// is true ends the job; after others it is begun again.
type Worker interface {
	Work(ctx context.Context, t *Task) (result any, err error)
	Final(err error) bool
}

// Config of a Runner. Registry and Workers are required.
type Config struct {
	Registry *registry.Registry
	// Workers by kind.
	Workers map[string]Worker
	// Yields are kinds that leave a place of MaxRunning to others, however many of them wait.
	Yields map[string]bool
	// OnError hears what goes wrong beside the jobs.
	OnError func(error)
	// Beat, Gone and Look are beatEvery, goneAfter and lookEvery where 0.
	Beat, Gone, Look time.Duration
}

// Runner carries out jobs. It is safe for concurrent use.
type Runner struct {
	cfg   Config
	nudge chan struct{}

	mu      sync.Mutex
	running map[string]*Task
	seen    map[string]firstSeen
}

// firstSeen is when an entry was first seen as it is.
type firstSeen struct {
	at      time.Time
	updated time.Time
}

// New prepares a runner.
func New(cfg Config) *Runner {
	if cfg.OnError == nil {
		cfg.OnError = func(error) {}
	}
	for _, d := range []struct {
		is *time.Duration
		or time.Duration
	}{{&cfg.Beat, beatEvery}, {&cfg.Gone, goneAfter}, {&cfg.Look, lookEvery}} {
		if *d.is == 0 {
			*d.is = d.or
		}
	}
	return &Runner{cfg: cfg, nudge: make(chan struct{}, 1), running: map[string]*Task{}, seen: map[string]firstSeen{}}
}

// Run carries out jobs until ctx ends. Then those under way go back into the queue.
func (r *Runner) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(r.cfg.Look)
	defer tick.Stop()
	for {
		if err := r.look(ctx, &wg); err != nil && ctx.Err() == nil {
			r.cfg.OnError(fmt.Errorf("jobs: %w", err))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-r.nudge:
		}
	}
}

// look takes up jobs that no gateway runs, as many as may run.
func (r *Runner) look(ctx context.Context, wg *sync.WaitGroup) error {
	reading, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	entries, err := r.cfg.Registry.Jobs(reading, verb)
	if err != nil {
		return err
	}
	for i := len(entries) - 1; i >= 0; i-- { // the one touched longest ago first
		entry := entries[i]
		var j Job
		if err := json.Unmarshal(entry.State, &j); err != nil {
			r.cfg.OnError(fmt.Errorf("jobs: entry %s: %w", entry.ID, err))
			continue
		}
		if r.mayTake(&j) {
			if err := r.take(ctx, wg, entry, j); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayTake reports whether this gateway may take a job up now.
func (r *Runner) mayTake(j *Job) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j.State.Ended() {
		delete(r.seen, j.ID)
		return false
	}
	if r.running[j.ID] != nil || r.cfg.Workers[j.Kind] == nil || len(r.running) >= MaxRunning || r.cfg.Yields[j.Kind] && r.yielding() >= MaxRunning-1 {
		return false
	}
	if j.State == Queued { // after an error a moment later, and not in a loop
		return j.Tries == 0 || time.Since(j.UpdatedAt) >= r.cfg.Look
	}
	s, ok := r.seen[j.ID]
	if !ok || !s.updated.Equal(j.UpdatedAt) {
		if len(r.seen) > registry.MaxJobs {
			clear(r.seen)
		}
		r.seen[j.ID] = firstSeen{time.Now(), j.UpdatedAt}
		return false
	}
	return time.Since(s.at) >= r.cfg.Gone
}

// yielding counts the jobs under way that yield to others. Caller holds mu.
func (r *Runner) yielding() (n int) {
	for _, t := range r.running {
		if r.cfg.Yields[t.kind] {
			n++
		}
	}
	return n
}

// take takes a job up, unless another gateway was first.
func (r *Runner) take(ctx context.Context, wg *sync.WaitGroup, entry registry.Job, j Job) error {
	t := &Task{r: r, kind: j.Kind, entry: entry, job: j, ctx: ctx, beats: make(chan struct{}, 1)}
	t.job.State, t.job.StartedAt = Running, now()
	if j.Cancel {
		t.job.State, t.job.EndedAt = Cancelled, now()
	}
	if err := t.write(ctx); err != nil {
		if errors.Is(err, registry.ErrConflict) {
			return nil
		}
		return err
	}
	if j.Cancel {
		return nil
	}
	r.mu.Lock()
	r.running[j.ID] = t
	r.mu.Unlock()
	wg.Go(func() {
		t.run(r.cfg.Workers[j.Kind])
		r.mu.Lock()
		delete(r.running, j.ID)
		r.mu.Unlock()
		r.wake()
	})
	return nil
}

func (r *Runner) wake() {
	select {
	case r.nudge <- struct{}{}:
	default:
	}
}

// Submit remembers a job and returns it; a gateway runs it soon.
func (r *Runner) Submit(ctx context.Context, kind, topic string, request any) (Job, error) {
	all, err := r.List(ctx)
	if err != nil {
		return Job{}, err
	}
	waiting := 0
	for _, j := range all {
		if !j.State.Ended() {
			waiting++
		}
	}
	if waiting >= MaxQueued {
		return Job{}, fmt.Errorf("%w: %d have not ended; wait for one, or cancel one", ErrFull, waiting)
	}
	text, err := json.Marshal(request)
	if err != nil {
		return Job{}, err
	}
	j := Job{ID: newID(), Kind: kind, Topic: topic, State: Queued, Request: text, By: access.From(ctx).Name, CreatedAt: now()}
	t := &Task{r: r, entry: registry.Job{ID: j.ID, Verb: verb}, job: j}
	if j.Topic != "" { // a job of all topics goes with none of them
		t.entry.Topics = []string{j.Topic}
	}
	if err := t.write(ctx); err != nil {
		return Job{}, err
	}
	r.wake()
	return t.job, nil
}

// newID is a random name of 16 hex digits.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: see its documentation
	return hex.EncodeToString(b[:])
}

func now() time.Time { return time.Now().UTC() }

// List returns all jobs that are remembered, the one touched last first.
func (r *Runner) List(ctx context.Context) ([]Job, error) {
	entries, err := r.cfg.Registry.Jobs(ctx, verb)
	if err != nil {
		return nil, err
	}
	out := []Job{}
	for _, e := range entries {
		var j Job
		if err := json.Unmarshal(e.State, &j); err == nil { // look reports one that cannot be read
			out = append(out, j)
		}
	}
	return out, nil
}

// Get reads a job.
func (r *Runner) Get(ctx context.Context, id string) (Job, error) {
	t, err := r.read(ctx, id)
	if err != nil {
		return Job{}, err
	}
	return t.job, nil
}

func (r *Runner) read(ctx context.Context, id string) (*Task, error) {
	if b, err := hex.DecodeString(id); err != nil || len(b) != 8 {
		return nil, fmt.Errorf("%w: %q is not the 16 hex digits of a job", ErrNoJob, id)
	}
	entry, err := r.cfg.Registry.Job(ctx, verb, id)
	if errors.Is(err, registry.ErrNotFound) {
		return nil, Unknown(id)
	}
	if err != nil {
		return nil, err
	}
	t := &Task{r: r, entry: entry}
	return t, json.Unmarshal(entry.State, &t.job)
}

// Cancel ends a job. What it has done stays done.
func (r *Runner) Cancel(ctx context.Context, id string) (Job, error) {
	for {
		t, err := r.read(ctx, id)
		if err != nil {
			return Job{}, err
		}
		switch t.job.State {
		case Queued:
			t.job.State, t.job.EndedAt = Cancelled, now()
		case Running:
			t.job.Cancel = true
		default:
			return t.job, fmt.Errorf("%w: %s is %s", ErrEnded, id, t.job.State)
		}
		t.job.CancelledBy = access.From(ctx).Name
		err = t.write(ctx)
		if errors.Is(err, registry.ErrConflict) && ctx.Err() == nil {
			continue // the gateway that runs it wrote; this ends with the context
		}
		r.mu.Lock()
		running := r.running[id]
		r.mu.Unlock()
		if running != nil && err == nil {
			running.nudge()
		}
		return t.job, err
	}
}
