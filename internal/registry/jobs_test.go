package registry

import (
	"errors"
	"testing"
)

// TestForgetJob holds that a job goes as it was read alone: what another process has written since stays.
func TestForgetJob(t *testing.T) {
	t.Parallel()
	r, ctx := open(t), timeout(t)
	job := Job{ID: "j", Verb: "alerts", State: []byte("{}")}
	if err := r.SaveJob(ctx, &job); err != nil {
		t.Fatal(err)
	}
	read, err := r.Jobs(ctx, "alerts")
	if err != nil || len(read) != 1 {
		t.Fatal(read, err)
	}
	job.State = []byte(`{"of":"another process"}`)
	if err := r.SaveJob(ctx, &job); err != nil {
		t.Fatal(err)
	}
	if err := r.ForgetJob(ctx, &read[0]); err != nil {
		t.Errorf("what changed meanwhile: %v", err)
	}
	now, err := r.Job(ctx, "alerts", "j")
	if err != nil || string(now.State) != string(job.State) {
		t.Errorf("%s, %v", now.State, err)
	}
	if err := r.ForgetJob(ctx, &now); err != nil {
		t.Error(err)
	}
	if _, err := r.Job(ctx, "alerts", "j"); !errors.Is(err, ErrNotFound) {
		t.Errorf("it is there: %v", err)
	}
}
