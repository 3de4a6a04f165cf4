package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Job is a long work of a verb that can be taken up again.
type Job struct {
	ID   string `json:"id"`
	Verb string `json:"verb"`
	// UpdatedAt is by the clock of the process that wrote it, for people and for the bound.
	UpdatedAt time.Time `json:"updated_at"`
	Done      bool      `json:"done,omitempty"`
	// Topics are those that the job reads or writes: with one of them it goes.
	Topics []string `json:"topics,omitempty"`
	// State is the verb's own.
	State json.RawMessage `json:"state"`

	rev uint64
	as  map[string]int // the schema versions of Topics
}

// For says which topics a new job reads or writes, as it has read them.
func (j *Job) For(topics ...*schemas.Topic) {
	j.Topics, j.as = nil, map[string]int{}
	for _, t := range topics {
		j.Topics, j.as[t.Name] = append(j.Topics, t.Name), t.Version
	}
}

// MaxJobs bounds the jobs of a verb that are remembered: at most some 300 KiB
// each, usually half of one.
const MaxJobs = 200

// Job reads a job: ErrNotFound when there is none.
func (r *Registry) Job(ctx context.Context, verb, id string) (Job, error) {
	var j Job
	rev, err := r.get(ctx, schemas.JobKey(verb, id), &j)
	j.rev = rev
	return j, err
}

// SaveJob writes a job if no other process has since it was read: else ErrConflict. A
// new job takes the place of those touched longest ago, finished ones first, when
// there are MaxJobs.
func (r *Registry) SaveJob(ctx context.Context, j *Job) error {
	if j.rev == 0 {
		if err := r.dropJobs(ctx, j.Verb, MaxJobs-1); err != nil {
			return err
		}
	}
	c := &change{key: schemas.JobKey(j.Verb, j.ID), rev: j.rev, v: j}
	err := r.enterAs(ctx, j.Topics, j.as, c)
	if err == nil {
		j.rev = c.rev
		return nil
	}
	if errors.Is(err, ErrConflict) {
		return fmt.Errorf("%w: another process runs this job", err)
	}
	return err
}

// Jobs lists the jobs of a verb, the one touched last first.
func (r *Registry) Jobs(ctx context.Context, verb string) ([]Job, error) {
	var jobs []Job
	err := r.scan(ctx, schemas.JobKeys(verb), func(key string, rev uint64, value []byte) error {
		j := Job{rev: rev}
		if err := json.Unmarshal(value, &j); err != nil {
			return unreadable(key, err)
		}
		jobs = append(jobs, j)
		return nil
	})
	slices.SortFunc(jobs, func(a, b Job) int { return b.UpdatedAt.Compare(a.UpdatedAt) })
	return jobs, err
}

// ForgetJob takes a job out of the registry, if no other process has written it since it was read: else it is left as it is.
func (r *Registry) ForgetJob(ctx context.Context, j *Job) error {
	return r.forgetAt(ctx, schemas.JobKey(j.Verb, j.ID), j.rev)
}

// dropJobs forgets jobs until at most keep are left.
func (r *Registry) dropJobs(ctx context.Context, verb string, keep int) error {
	jobs, err := r.Jobs(ctx, verb)
	if err != nil {
		return err
	}
	for _, j := range surplus(jobs, keep) {
		if err := r.ForgetJob(ctx, &j); err != nil {
			return err
		}
	}
	return nil
}

// surplus are the jobs to forget: finished ones first, then the oldest.
func surplus(jobs []Job, keep int) []Job {
	if len(jobs) <= keep {
		return nil
	}
	jobs = slices.Clone(jobs)
	slices.SortStableFunc(jobs, func(a, b Job) int {
		if a.Done != b.Done {
			if a.Done {
				return -1
			}
			return 1
		}
		return cmp.Or(a.UpdatedAt.Compare(b.UpdatedAt), cmp.Compare(a.ID, b.ID))
	})
	return jobs[:len(jobs)-keep]
}
