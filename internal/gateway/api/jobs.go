package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/jobs"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/schemas"
)

// The kinds of jobs.
const (
	kindErasure = "erasure"
	kindReplay  = "replay"
	kindLetters = "dead_letters"
	kindVerify  = "verify"
)

// workers are those whose parts are there.
func (a *API) workers() map[string]jobs.Worker {
	all := map[string]jobs.Worker{}
	if a.cfg.Eraser != nil {
		all[kindErasure] = eraseWorker{a}
	}
	if a.cfg.Replayer != nil {
		all[kindReplay] = replayWorker{a}
	}
	if a.cfg.Letters != nil {
		all[kindLetters] = letterWorker{a}
	}
	if a.cfg.Verify != nil {
		all[kindVerify] = proofWorker{a}
	}
	return all
}

// addJobs adds what shows and ends jobs, whatever their kind.
func (a *API) addJobs(on routes) {
	on.serve(&operations.Jobs, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		p := paramsOf(r)
		kind, topic := p.word("kind"), p.text("topic")
		if err := p.end(); err != nil {
			return nil, err
		}
		all, err := a.jobs.List(r.Context())
		some := []jobs.Job{}
		for _, j := range all {
			if (kind == "" || kind == j.Kind) && (topic == "" || topic == j.Topic) {
				some = append(some, j)
			}
		}
		return jobList{some}, err
	}))
	on.serve(&operations.Job, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		return a.jobOf(r)
	}))
	on.serve(&operations.CancelJob, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		j, err := a.jobOf(r)
		if err != nil {
			return nil, err
		}
		return a.jobs.Cancel(r.Context(), j.ID)
	}))
}

// jobOf is the job that a path names. One of a topic that who asks may not operate is as one that is not there.
func (a *API) jobOf(r *http.Request) (jobs.Job, error) {
	id := r.PathValue("id")
	j, err := a.jobs.Get(r.Context(), id)
	if err == nil && a.may(r, access.Operate, j.Topic) != nil {
		err = jobs.Unknown(id)
	}
	if err != nil {
		return jobs.Job{}, err
	}
	return j, nil
}

// submit begins a job and answers with it.
func (a *API) submit(ctx context.Context, kind, topic string, req any) (any, error) {
	j, err := a.jobs.Submit(ctx, kind, topic, req)
	if err != nil {
		return nil, err
	}
	return status{http.StatusAccepted, j}, nil
}

// final says that an error is the request's fault, which another try does not mend.
func final(err error) bool {
	for _, own := range []error{schemas.ErrRequest, erasure.ErrRequest, schemas.ErrUnknownTopic, schemas.ErrTopicName} {
		if errors.Is(err, own) {
			return true
		}
	}
	return false
}
