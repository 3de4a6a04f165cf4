package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/jobs"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/query"
)

// eraseRequest is the body of a request to erase.
type eraseRequest struct {
	Topic string   `json:"topic,omitempty"`
	Users []string `json:"users,omitempty"`
	Where string   `json:"where,omitempty"`
	// From and To are points in time, as the flags of `almanac erase`.
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Purge takes the frames with such events out of the streams too.
	Purge bool `json:"purge,omitempty"`
}

// eraseJob is what a job carries out. It names no person: whom an erasure names is in the
// ledger alone, where it can be redacted.
type eraseJob struct {
	Topic   string `json:"topic"`
	Erasure string `json:"erasure"`
	Purge   bool   `json:"purge,omitempty"`
}

// erased is what such a job came to; GET /v1/erasures/{id} has the whole proof.
type erased struct {
	Erasure      string `json:"erasure"`
	Rows         uint64 `json:"rows"`
	Shards       int    `json:"shards"`
	Certified    bool   `json:"certified"`
	NotCertified string `json:"not_certified,omitempty"`
}

func (q *eraseRequest) request(now time.Time) (req erasure.Request, err error) {
	req = erasure.Request{Topic: q.Topic, Users: q.Users, Where: q.Where, Reason: q.Reason}
	if req.From, err = query.ParseTime(q.From, now); err == nil {
		req.To, err = query.ParseEnd(q.To, now)
	}
	if err != nil {
		return req, request.Refuse(http.StatusBadRequest, "bad_request", err.Error(), "")
	}
	return req, nil
}

// addErasures adds erasures.
func (a *API) addErasures(on routes) {
	if a.cfg.Eraser == nil {
		return
	}
	on.serve(&operations.Erase, a.read(a.erase))
	on.serve(&operations.Erasures, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		p := paramsOf(r)
		topic := p.text("topic")
		if err := p.end(); err != nil {
			return nil, err
		}
		all, err := a.cfg.Registry.Ledgers(r.Context())
		return erasureList{filled(erasure.List(all, topic))}, err
	}))
	on.serve(&operations.ShowErasure, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		x, e, err := a.erasure(r)
		if err != nil {
			return nil, err
		}
		return x.Show(r.Context(), e.Topic, e.ID)
	}))
	on.serve(&operations.ResumeErasure, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		p := paramsOf(r)
		purge := p.yes("purge")
		if err := p.end(); err != nil {
			return nil, err
		}
		_, e, err := a.erasure(r)
		if err != nil {
			return nil, err
		}
		return a.submit(r.Context(), kindErasure, e.Topic, &eraseJob{Topic: e.Topic, Erasure: e.ID, Purge: purge})
	}))
}

// erasure is the one of the ledger that a path names. One of a topic that who asks may not operate is as one that is not there.
func (a *API) erasure(r *http.Request) (*erasure.Eraser, ledger.Erasure, error) {
	ctx, id := r.Context(), r.PathValue("id")
	x, err := a.cfg.Eraser(ctx, nil)
	if err != nil {
		return nil, ledger.Erasure{}, err
	}
	all, err := a.cfg.Registry.Ledgers(ctx)
	if err != nil {
		return nil, ledger.Erasure{}, err
	}
	for _, e := range erasure.List(all, "") {
		if e.ID == id && a.may(r, access.Operate, e.Topic) == nil {
			return x, e, nil
		}
	}
	return nil, ledger.Erasure{}, request.Refuse(http.StatusNotFound, "no_such_erasure", fmt.Sprintf("the ledger has no erasure %q", id), "GET /v1/erasures lists them")
}

// erase enters an erasure in the ledger and begins the job that carries it out. So no
// reader returns such events any more once this is answered.
func (a *API) erase(w http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	dry := p.yes("dry_run")
	if err := p.end(); err != nil {
		return nil, err
	}
	var q eraseRequest
	if err := body(w, r, &q); err != nil {
		return nil, err
	}
	if err := a.may(r, access.Operate, q.Topic); err != nil {
		return nil, err
	}
	req, err := q.request(time.Now())
	if err != nil {
		return nil, err
	}
	x, err := a.cfg.Eraser(r.Context(), nil)
	if err != nil {
		return nil, err
	}
	req.By = access.From(r.Context()).Name
	if dry {
		return x.Plan(r.Context(), req)
	}
	e, err := x.Start(r.Context(), req)
	if err != nil {
		return nil, err
	}
	return a.submit(r.Context(), kindErasure, e.Topic, &eraseJob{Topic: e.Topic, Erasure: e.ID, Purge: q.Purge})
}

// eraseWorker carries an erasure out. It may be done again at any point.
type eraseWorker struct{ a *API }

// Work implements jobs.Worker.
func (w eraseWorker) Work(ctx context.Context, t *jobs.Task) (any, error) {
	var q eraseJob
	if err := t.Request(&q); err != nil {
		return nil, err
	}
	x, err := w.a.cfg.Eraser(ctx, func(p erasure.Progress) {
		if p.Copying {
			t.Progress("waits until a backup has ended")
		} else if p.State == ledger.Waiting {
			t.Progress(fmt.Sprintf("waits until %d events are stored", p.Pending))
		} else {
			t.Progress(fmt.Sprintf("%d of %d shards", p.Done, p.Shards))
		}
	})
	if err != nil {
		return nil, err
	}
	e, err := x.Run(ctx, q.Topic, q.Erasure)
	if err != nil {
		return nil, err
	}
	if q.Purge {
		if e, err = x.Purge(ctx, e.Topic, e.ID); err != nil {
			return nil, err
		}
	}
	p, err := x.Show(ctx, e.Topic, e.ID)
	if err != nil {
		return nil, err
	}
	return erased{Erasure: e.ID, Rows: e.Rows, Shards: e.Shards, Certified: p.Certified, NotCertified: p.NotCertified}, nil
}

// Final implements jobs.Worker.
func (eraseWorker) Final(err error) bool { return final(err) }
