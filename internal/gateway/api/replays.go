package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/jobs"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
)

// replayRequest is the body of a request to replay.
type replayRequest struct {
	Topic string `json:"topic"`
	// Into is a topic or a subject.
	Into  string `json:"into"`
	Shard string `json:"shard,omitempty"`
	Where string `json:"where,omitempty"`
	// From and To are points in time, as the flags of `almanac replay`.
	From    string       `json:"from,omitempty"`
	To      string       `json:"to,omitempty"`
	FromPos uint64       `json:"from_pos,omitempty"`
	ToPos   uint64       `json:"to_pos,omitempty"`
	Order   replay.Order `json:"order,omitempty"`
	Again   bool         `json:"again,omitempty"`
	// Speed is a multiple of the events' own, 0 for as fast as it goes. Rate bounds the
	// events a second; 0 is unbounded.
	Speed float64 `json:"speed,omitempty"`
	Rate  float64 `json:"rate,omitempty"`
	// Job is that of the replay itself, which `almanac replay --resume` takes too.
	Job string `json:"job,omitempty"`
}

// routedWait bounds the wait until what was accepted before is routed.
const routedWait = 10 * time.Second

// Bounds of the pace.
const (
	maxSpeed = 1e6
	maxRate  = 1e9
)

// addReplays adds replays into a topic or a subject.
func (a *API) addReplays(on routes) {
	if a.cfg.Replayer == nil {
		return
	}
	on.serve(&operations.Replay, a.read(a.replay))
}

// replay begins a replay and the job that carries it out.
func (a *API) replay(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := paramsOf(r).end(); err != nil {
		return nil, err
	}
	var q replayRequest
	if err := body(w, r, &q); err != nil {
		return nil, err
	}
	if err := a.mayReplay(r, &q); err != nil {
		return nil, err
	}
	wrong := func(message, hint string) error {
		return request.Refuse(http.StatusBadRequest, "bad_request", message, hint)
	}
	switch {
	case q.Job != "":
		return nil, wrong("job is given by the gateway", "")
	case q.Into == "" || q.Into == "-":
		return nil, wrong("into is empty: a replay over HTTP goes into a topic or a subject", "GET /v1/topics/{topic}/events reads the past, page by page")
	case !(q.Speed >= 0 && q.Speed <= maxSpeed) || !(q.Rate >= 0 && q.Rate <= maxRate):
		return nil, wrong(fmt.Sprintf("speed is 0 to %g, and rate 0 to %g", maxSpeed, maxRate), "")
	case q.Order == "" && q.Speed > 0:
		q.Order = replay.ByTime
	case q.Order != "" && q.Order != replay.ByTime && q.Order != replay.ByPosition:
		return nil, wrong(fmt.Sprintf("order is %q, it must be position or time", q.Order), "")
	}
	now := time.Now()
	req := replay.Request{Topic: q.Topic, Shard: q.Shard, FromPos: q.FromPos, ToPos: q.ToPos, Where: q.Where, Into: q.Into, Order: q.Order, Again: q.Again, Now: now}
	var err error
	if req.From, err = query.ParseTime(q.From, now); err == nil {
		req.To, err = query.ParseEnd(q.To, now)
	}
	if err != nil {
		return nil, wrong(schemas.Text(err), "")
	}
	// What was accepted before now is on its way to the shards for some milliseconds more.
	if _, err := a.cfg.Reader.WaitRouted(r.Context(), routedWait); err != nil {
		return nil, err
	}
	job, err := a.cfg.Replayer.Begin(r.Context(), req)
	if err != nil {
		return nil, err
	}
	if err := job.Remember(r.Context()); err != nil {
		return nil, err
	}
	q.Job = job.ID()
	return a.submit(r.Context(), kindReplay, q.Topic, &q)
}

// mayReplay returns why who asks may not replay a topic into another, which is sent to, or into a subject, which may be any.
func (a *API) mayReplay(r *http.Request, q *replayRequest) error {
	if err := a.may(r, access.Operate, q.Topic); err != nil {
		return err
	}
	if schemas.ValidateTopicName(q.Into) == nil {
		if a.cfg.Own != nil && a.cfg.Own(q.Into) {
			return access.From(r.Context()).Refused(&access.Denied{Action: access.Send, Topic: q.Into, Own: true})
		}
		return a.may(r, access.Send, q.Into)
	}
	return a.may(r, access.Admin, "")
}

// replayWorker carries a replay out, and goes on where it stands.
type replayWorker struct{ a *API }

// Work implements jobs.Worker.
func (w replayWorker) Work(ctx context.Context, t *jobs.Task) (any, error) {
	var q replayRequest
	if err := t.Request(&q); err != nil {
		return nil, err
	}
	job, err := w.a.cfg.Replayer.Resume(ctx, q.Job)
	if errors.Is(err, replay.ErrDone) {
		return job.Result(), nil
	}
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				replayed, seen, total := job.Progress()
				t.Progress(fmt.Sprintf("%d events replayed, %d of about %d seen", replayed, seen, total))
			}
		}
	}()
	res, err := job.Run(ctx, io.Discard, replay.Pace{Speed: q.Speed, Rate: q.Rate})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// Final implements jobs.Worker.
func (replayWorker) Final(err error) bool {
	for _, own := range []error{replay.ErrLost, replay.ErrTooWide, replay.ErrNoJob, replay.ErrTarget} {
		if errors.Is(err, own) {
			return true
		}
	}
	return final(err)
}
