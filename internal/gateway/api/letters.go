package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/jobs"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of dead letters.
const (
	defaultLetters = 100
	// maxOutcomes bounds the letters that a result names; the others are counted.
	maxOutcomes = 1000
)

// lettersRequest is what a job does with dead letters.
type lettersRequest struct {
	Topic  string `json:"topic"`
	Reason string `json:"reason,omitempty"`
	// Seq and At are the number of one letter, and when it was stored in unix ns.
	Seq  uint64 `json:"seq,omitempty"`
	At   int64  `json:"at,omitempty"`
	Drop bool   `json:"drop,omitempty"`
}

func (q *lettersRequest) request(dry bool) deadletters.Request {
	return deadletters.Request{Topic: q.Topic, Reason: q.Reason, Letter: schemas.Source{Seq: q.Seq, Stored: q.At}, Drop: q.Drop, DryRun: dry}
}

// Letters is what became of dead letters, in the last run of the job.
type Letters struct {
	Retried int `json:"retried"`
	Dropped int `json:"dropped"`
	Kept    int `json:"kept"`
	// Events of those that are not kept.
	Events  int                   `json:"events"`
	Letters []deadletters.Outcome `json:"letters"`
}

func (l *Letters) add(o deadletters.Outcome) error {
	switch o.Did {
	case deadletters.Kept:
		l.Kept++
	case deadletters.Dropped:
		l.Dropped, l.Events = l.Dropped+1, l.Events+o.Events
	default:
		l.Retried, l.Events = l.Retried+1, l.Events+o.Events
	}
	if len(l.Letters) < maxOutcomes {
		l.Letters = append(l.Letters, o)
	}
	return nil
}

// addLetters adds dead letters.
func (a *API) addLetters(on routes) {
	on.serve(&operations.DeadLetters, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		p := paramsOf(r)
		topic, reason, limit := p.text("topic"), p.text("reason"), p.number("limit")
		if err := p.end(); err != nil {
			return nil, err
		}
		if limit == 0 {
			limit = defaultLetters
		}
		list, err := a.cfg.Reader.DeadOf(r.Context(), topic, reason, limit)
		return letterList{filled(list)}, err
	}))
	on.serve(&operations.DeadReasons, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		p := paramsOf(r)
		topic := p.text("topic")
		if err := p.end(); err != nil {
			return nil, err
		}
		counts, err := a.cfg.Reader.DeadReasons(r.Context(), topic)
		return reasonList{filled(counts)}, err
	}))
	on.serve(&operations.DeadLetter, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) {
		if err := paramsOf(r).end(); err != nil {
			return nil, err
		}
		name, err := schemas.ParseName(r.PathValue("seq"))
		if err != nil {
			return nil, request.Refuse(http.StatusNotFound, "no_such_dead_letter", fmt.Sprintf("%q does not name a dead letter: %s", r.PathValue("seq"), err), "GET /v1/dead lists them")
		}
		d, err := a.cfg.Reader.DeadLetter(r.Context(), name)
		if err == nil && a.may(r, access.Operate, d.Topic) != nil {
			err = query.NoDeadLetter(name)
		}
		if err != nil {
			return nil, a.untold(r, name, err)
		}
		return d, nil
	}))
	if a.cfg.Letters == nil {
		return
	}
	on.serve(&operations.RetryLetters, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) { return a.resolve(r, false) }))
	on.serve(&operations.DropLetters, a.read(func(_ http.ResponseWriter, r *http.Request) (any, error) { return a.resolve(r, true) }))
}

// untold is why there is no such dead letter. What became of its number, which another topic's message may have, is told to those alone who operate
// all topics.
func (a *API) untold(r *http.Request, name schemas.Source, err error) error {
	if errors.Is(err, query.ErrNoDeadLetter) && !a.shows(r, access.Operate, "") {
		return query.NoDeadLetter(name)
	}
	return err
}

// resolve begins the job that sends letters again or drops them.
func (a *API) resolve(r *http.Request, drop bool) (any, error) {
	p := paramsOf(r)
	q := lettersRequest{Topic: p.text("topic"), Reason: p.text("reason"), Drop: drop}
	dry := p.yes("dry_run")
	if text := p.text("seq"); text != "" {
		name, err := schemas.ParseName(text)
		if err != nil || drop && !dry && name.Stored == 0 {
			p.bad("seq", "the id of a dead letter with its time, as GET /v1/dead lists it; a number alone is given again after SHARDS lost its end")
		}
		q.Seq, q.At = name.Seq, name.Stored
	}
	if q.Topic == "" {
		p.bad("topic", "the topic whose dead letters are meant")
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	if dry {
		out := Letters{Letters: []deadletters.Outcome{}}
		return &out, a.untold(r, schemas.Source{Seq: q.Seq, Stored: q.At}, a.cfg.Letters.Resolve(r.Context(), q.request(true), out.add))
	}
	if q.Seq > 0 {
		d, err := a.cfg.Reader.DeadLetter(r.Context(), schemas.Source{Seq: q.Seq, Stored: q.At})
		if err == nil && d.Topic != q.Topic {
			err = query.NoDeadLetter(schemas.Source{Seq: q.Seq, Stored: q.At})
		}
		if err != nil {
			return nil, a.untold(r, schemas.Source{Seq: q.Seq, Stored: q.At}, err)
		}
		q.At = d.At.UnixNano() // the job may run after the number was given again
	}
	return a.submit(r.Context(), kindLetters, q.Topic, &q)
}

// letterWorker deals with dead letters. Retrying is idempotent.
type letterWorker struct{ a *API }

// Work implements jobs.Worker.
func (w letterWorker) Work(ctx context.Context, t *jobs.Task) (any, error) {
	var q lettersRequest
	if err := t.Request(&q); err != nil {
		return nil, err
	}
	begun, err := t.Resume(new(bool))
	if err == nil && !begun {
		err = t.Save(ctx, true)
	}
	if err != nil {
		return nil, err
	}
	out := &Letters{Letters: []deadletters.Outcome{}}
	err = w.a.cfg.Letters.Resolve(ctx, q.request(false), func(o deadletters.Outcome) error {
		_ = out.add(o)
		t.Progress(fmt.Sprintf("%d retried, %d dropped, %d kept", out.Retried, out.Dropped, out.Kept))
		return nil
	})
	if begun && errors.Is(err, query.ErrNoDeadLetter) {
		return out, nil // a run that was cut off has done it
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Final implements jobs.Worker.
func (letterWorker) Final(err error) bool { return final(err) }
