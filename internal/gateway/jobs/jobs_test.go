package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/jobs"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// maxWait is how long anything may take on a busy machine.
const maxWait = 2 * time.Minute

// How long a job's entry stays the same until its gateway counts as gone.
const (
	soon  = 500 * time.Millisecond
	never = time.Hour
)

var errFinal = errors.New("it can never be done")

// worker does its work by a function.
type worker func(ctx context.Context, t *jobs.Task) (any, error)

func (w worker) Work(ctx context.Context, t *jobs.Task) (any, error) { return w(ctx, t) }
func (worker) Final(err error) bool                                  { return errors.Is(err, errFinal) }

// env is a registry of a test's own.
type env struct {
	t   *testing.T
	srv *embeddedtest.Servers
}

func start(t *testing.T) *env {
	t.Helper()
	e := &env{t, embeddedtest.Start(t, embeddedtest.WithoutClickHouse())}
	if _, err := registry.Setup(t.Context(), e.srv.NC(), schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 64 << 20, RegistryBytes: 8 << 20, Replicas: 1}); err != nil {
		t.Fatal(err)
	}
	return e
}

// gateway runs jobs over a connection of its own. stop ends it and waits; kill cuts the
// connection. Another's job counts as gone when its entry stayed the same for the time
// given: one that is alive may be kept from its beat on a busy machine.
func (e *env) gateway(gone time.Duration, w worker) (r *jobs.Runner, stop, kill func()) {
	e.t.Helper()
	nc, err := nats.Connect(e.srv.NATSURL, nats.Timeout(maxWait))
	if err != nil {
		e.t.Fatal(err)
	}
	reg, err := registry.Open(e.t.Context(), nc)
	if err != nil {
		e.t.Fatal(err)
	}
	r = jobs.New(jobs.Config{Registry: reg, Workers: map[string]jobs.Worker{"test": w, "yields": w}, Yields: map[string]bool{"yields": true}, Beat: 50 * time.Millisecond, Gone: gone, Look: 50 * time.Millisecond})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	e.t.Cleanup(func() {
		nc.Close()
		stop()
	})
	return r, stop, nc.Close
}

// reaches waits until a job is in a state.
func (e *env) reaches(r *jobs.Runner, id string, state jobs.State) (j jobs.Job) {
	e.t.Helper()
	embeddedtest.Eventually(e.t, maxWait, func() error {
		var err error
		if j, err = r.Get(e.t.Context(), id); err == nil && j.State != state {
			err = fmt.Errorf("job %+v, want it %s", j, state)
		}
		return err
	})
	return j
}

func (e *env) submit(r *jobs.Runner) string {
	e.t.Helper()
	j, err := r.Submit(access.With(e.t.Context(), &access.Principal{Name: "ops"}), "test", "app", map[string]int{"n": 7})
	if err != nil || j.State != jobs.Queued || j.By != "ops" {
		e.t.Fatalf("%+v, %v", j, err)
	}
	return j.ID
}

// A job is done once, with its result, and stays so.
func TestDone(t *testing.T) {
	t.Parallel()
	e := start(t)
	var runs atomic.Int32
	r, _, _ := e.gateway(never, func(_ context.Context, task *jobs.Task) (any, error) {
		runs.Add(1)
		var q struct{ N int }
		if err := task.Request(&q); err != nil {
			return nil, err
		}
		return q.N + 1, nil
	})
	id := e.submit(r)
	if j := e.reaches(r, id, jobs.Done); string(j.Result) != "8" || j.EndedAt.IsZero() || runs.Load() != 1 {
		t.Errorf("%d runs: %+v", runs.Load(), j)
	}
	if _, err := r.Cancel(t.Context(), id); !errors.Is(err, jobs.ErrEnded) {
		t.Errorf("cancelled after its end: %v", err)
	}
	for _, id := range []string{"", "x", "0000000000000000", "../../x"} {
		if _, err := r.Get(t.Context(), id); !errors.Is(err, jobs.ErrNoJob) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// goesOn is a worker that saves where it is and blocks in its first run.
func goesOn(began chan<- struct{}) worker {
	return func(ctx context.Context, task *jobs.Task) (any, error) {
		var at string
		if again, err := task.Resume(&at); again || err != nil {
			return "went on at " + at, err
		}
		if err := task.Save(ctx, "half"); err != nil {
			return nil, err
		}
		began <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// A job whose gateway ends goes on in another where it was; so does one whose gateway is
// cut off without a word.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"ends", "killed"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			e := start(t)
			began := make(chan struct{}, 1)
			first, stop, kill := e.gateway(soon, goesOn(began))
			id := e.submit(first)
			<-began
			second, _, _ := e.gateway(soon, goesOn(began))
			if way == "ends" {
				stop()
			} else {
				kill()
			}
			if j := e.reaches(second, id, jobs.Done); string(j.Result) != `"went on at half"` {
				t.Errorf("%+v", j)
			}
		})
	}
}

// Two gateways never run one job at once, and both take some.
func TestOneRunsIt(t *testing.T) {
	t.Parallel()
	e := start(t)
	var running [20]atomic.Int32
	work := func(_ context.Context, task *jobs.Task) (any, error) {
		var n int
		if err := task.Request(&n); err != nil {
			return nil, err
		}
		return running[n].Add(1), nil
	}
	a, _, _ := e.gateway(never, work)
	b, _, _ := e.gateway(never, work)
	for i := range running {
		if _, err := []*jobs.Runner{a, b}[i%2].Submit(t.Context(), "test", "app", i); err != nil {
			t.Fatal(err)
		}
	}
	all, err := a.List(t.Context())
	if err != nil || len(all) != len(running) {
		t.Fatalf("%d jobs, %v", len(all), err)
	}
	for _, j := range all {
		if done := e.reaches(b, j.ID, jobs.Done); string(done.Result) != "1" {
			t.Errorf("job %s was run %s times", j.ID, done.Result)
		}
	}
}

// A job is cancelled while it waits, and while another gateway runs it.
func TestCancel(t *testing.T) {
	t.Parallel()
	e := start(t)
	began := make(chan struct{}, 10)
	runs, _, _ := e.gateway(never, goesOn(began))
	other, stopOther, _ := e.gateway(never, nil)
	stopOther()
	var ids []string
	for range jobs.MaxRunning + 1 {
		ids = append(ids, e.submit(other))
	}
	for range jobs.MaxRunning {
		<-began
	}
	for _, id := range ids {
		if _, err := other.Cancel(access.With(t.Context(), &access.Principal{Name: "chief"}), id); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		if j := e.reaches(runs, id, jobs.Cancelled); j.EndedAt.IsZero() || j.CancelledBy != "chief" {
			t.Errorf("%+v", j)
		}
	}
}

// Jobs that yield leave a place to others, however many wait. They may be of no topic.
func TestYields(t *testing.T) {
	t.Parallel()
	e := start(t)
	began := make(chan struct{}, 10)
	r, _, _ := e.gateway(never, goesOn(began))
	for range jobs.MaxRunning + 1 {
		if _, err := r.Submit(t.Context(), "yields", "", 1); err != nil {
			t.Fatal(err)
		}
	}
	for range jobs.MaxRunning - 1 {
		<-began
	}
	e.reaches(r, e.submit(r), jobs.Running)
	all, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]int{}
	for _, j := range all {
		states[j.Kind+" "+string(j.State)]++
	}
	if states["yields running"] != jobs.MaxRunning-1 || states["yields queued"] != 2 {
		t.Errorf("jobs by state: %v", states)
	}
}

// An error that is the request's ends the job; another is tried again.
func TestErrors(t *testing.T) {
	t.Parallel()
	e := start(t)
	var runs atomic.Int32
	r, _, _ := e.gateway(never, func(_ context.Context, task *jobs.Task) (any, error) {
		var q struct{ N int }
		_ = task.Request(&q)
		if runs.Add(1) == 3 {
			return nil, fmt.Errorf("because: %w", errFinal)
		}
		return nil, errors.New("the server is away")
	})
	j := e.reaches(r, e.submit(r), jobs.Failed)
	if j.Error != "because: it can never be done" || runs.Load() != 3 || j.Tries != 2 {
		t.Errorf("%d runs: %+v", runs.Load(), j)
	}
}

// So many may wait, and no more.
func TestFull(t *testing.T) {
	t.Parallel()
	e := start(t)
	r, stop, _ := e.gateway(never, nil)
	stop()
	for range jobs.MaxQueued {
		e.submit(r)
	}
	if _, err := r.Submit(t.Context(), "test", "app", 1); !errors.Is(err, jobs.ErrFull) {
		t.Errorf("beyond the bound: %v", err)
	}
}
