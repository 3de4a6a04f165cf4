package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// addTimers adds what creates, reads, changes and cancels timers. An ETag is a timer's revision.
func (a *API) addTimers(on routes) {
	if a.cfg.Timers == nil {
		return
	}
	for op, f := range map[*operations.Operation]timerRoute{
		&operations.TimerGroups: a.timerGroups, &operations.CreateTimer: a.createTimer, &operations.Timers: a.listTimers,
		&operations.Timer: a.getTimer, &operations.UpdateTimer: a.updateTimer, &operations.DeleteTimer: a.deleteTimer,
		&operations.FireTimer:    a.onTimer((*timers.Timers).FireNow),
		&operations.RetryTimer:   a.onTimer((*timers.Timers).Retry),
		&operations.TimerHistory: a.timerHistory,
	} {
		on.serve(op, a.onTimers(f))
	}
	for op, f := range map[*operations.Operation]answer{&operations.TimerGroup: a.timerConfig, &operations.SetTimerGroup: a.setTimerConfig} {
		on.serve(op, a.within(a.timing, func(w http.ResponseWriter, r *http.Request) (any, error) {
			v, err := f(w, r)
			return v, timerError(err)
		}))
	}
}

// timerRoute is a request about the timers of a topic. p has the topic's parameter.
type timerRoute func(t *timers.Timers, p *params, w http.ResponseWriter, r *http.Request) (any, error)

func (a *API) onTimers(f timerRoute) http.HandlerFunc {
	return a.within(a.timing, func(w http.ResponseWriter, r *http.Request) (any, error) {
		p := paramsOf(r)
		t, err := a.timers.open(r.Context(), a.cfg.Timers, timerTopic(p))
		if err != nil {
			return nil, timerError(err)
		}
		v, err := f(t, p, w, r)
		return v, timerError(err)
	})
}

func timerTopic(p *params) string {
	if topic := p.text("topic"); topic != "" {
		return topic
	}
	return schemas.DefaultTimerTopic
}

// timerErrors are the refusals of timers that are not of one timer's state.
var timerErrors = rules{
	{registry.ErrGroupChange, http.StatusConflict, string(timer.CodeGroupChange), ""},
	{fronts.ErrLost, http.StatusServiceUnavailable, "lost_front", "the operator runs `almanac repair`; then send the request again"},
	{fronts.ErrReplaced, http.StatusServiceUnavailable, "replaced", "the operator runs `almanac repair`, which puts back what is stored; then send the request again"},
	{fronts.ErrFull, http.StatusInsufficientStorage, "full", "timers leave once they are over and stored; `almanac streams` shows who holds TIMERS, `almanac streams apply TIMERS` gives it more room"},
	{fronts.ErrStore, http.StatusInsufficientStorage, "store_full", "the operator makes room for NATS; `almanac doctor` says where"},
	{fronts.ErrUnknown, http.StatusServiceUnavailable, "outcome_unknown", "read the timer, or send the same request again: a creation of the same content is the same timer"},
	{fronts.ErrCut, http.StatusServiceUnavailable, "cut", "send the request again"},
	{fronts.ErrConflict, http.StatusConflict, "busy", "send the request again"},
}

// timerError is an error about timers for the client, with its own code.
func timerError(err error) error {
	var own *timer.Refusal
	if errors.As(err, &own) {
		return request.Refuse(refusedStatus(own), string(own.Code), own.Text, "")
	}
	if refused := timerErrors.of(err); refused != nil {
		return refused
	}
	return err
}

func refusedStatus(r *timer.Refusal) int {
	for _, c := range []struct {
		is     error
		status int
	}{
		{timer.ErrNotFound, http.StatusNotFound}, {timer.ErrRevision, http.StatusPreconditionFailed}, {timer.ErrExists, http.StatusConflict},
		{timer.ErrFiring, http.StatusConflict}, {timer.ErrState, http.StatusConflict}, {timer.ErrGroupFull, http.StatusTooManyRequests},
	} {
		if errors.Is(r, c.is) {
			return c.status
		}
	}
	return http.StatusBadRequest
}

// expected reads If-Match: a revision, or any.
func expected(r *http.Request) (timers.Condition, error) {
	text := r.Header.Get("If-Match")
	if text == "*" || r.Header.Values("If-Match") == nil {
		return timers.Always, nil
	}
	n, err := strconv.ParseInt(strings.Trim(text, `"`), 10, 64)
	if err != nil || n < 1 {
		return timers.Always, request.Refuse(http.StatusBadRequest, "bad_header", fmt.Sprintf("If-Match is %s, it must be the ETag of a timer, such as \"3\"", text), "")
	}
	return timers.IfRevision(n), nil
}

// shown is a timer as an answer, with its ETag. Who may change timers and not read them gets no more than what became of the request: the
// rest may be of another.
func (a *API) shown(w http.ResponseWriter, r *http.Request, code int, tm timers.Timer, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	w.Header().Set("ETag", strconv.Quote(strconv.FormatInt(tm.Revision, 10)))
	if !a.cfg.Anyone && access.From(r.Context()).MayAll(access.Read, tm.Topic) != nil {
		return status{code, timerChanged{tm.Group, tm.ID, tm.State, tm.Revision}}, nil
	}
	return status{code, viewTimer(&tm)}, nil
}

func (a *API) createTimer(t *timers.Timers, p *params, w http.ResponseWriter, r *http.Request) (any, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	var q timerRequest
	if err := timerBody(w, r, &q); err != nil {
		return nil, err
	}
	now, err := t.Now(r.Context())
	if err != nil {
		return nil, err
	}
	n, err := q.creation(r.PathValue("group"), now)
	if err != nil {
		return nil, err
	}
	tm, created, err := t.Create(r.Context(), n)
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return a.shown(w, r, code, tm, err)
}

func (a *API) getTimer(t *timers.Timers, p *params, w http.ResponseWriter, r *http.Request) (any, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	tm, err := t.Get(r.Context(), r.PathValue("group"), r.PathValue("id"))
	return a.shown(w, r, http.StatusOK, tm, err)
}

func (a *API) updateTimer(t *timers.Timers, p *params, w http.ResponseWriter, r *http.Request) (any, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	cond, err := expected(r)
	if err != nil {
		return nil, err
	}
	var q timerRequest
	if err := timerBody(w, r, &q); err != nil {
		return nil, err
	}
	now, err := t.Now(r.Context())
	if err != nil {
		return nil, err
	}
	c, err := q.change(now)
	if err != nil {
		return nil, err
	}
	if c == (timers.Change{}) {
		return nil, request.Refuse(http.StatusBadRequest, "bad_request", "the request changes nothing of the timer", "name what is to change, such as execute_at; GET reads a timer")
	}
	tm, err := t.Update(r.Context(), r.PathValue("group"), r.PathValue("id"), cond, c)
	return a.shown(w, r, http.StatusOK, tm, err)
}

func (a *API) deleteTimer(t *timers.Timers, p *params, _ http.ResponseWriter, r *http.Request) (any, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	cond, err := expected(r)
	if err != nil {
		return nil, err
	}
	inFlight, err := t.Delete(r.Context(), r.PathValue("group"), r.PathValue("id"), cond)
	if err != nil {
		return nil, err
	}
	if inFlight {
		return status{http.StatusAccepted, timerInFlight{true}}, nil
	}
	return status{http.StatusNoContent, nil}, nil
}

// onTimer is a route without a body that changes a timer.
func (a *API) onTimer(f func(t *timers.Timers, ctx context.Context, group, id string) (timers.Timer, error)) timerRoute {
	return func(t *timers.Timers, p *params, w http.ResponseWriter, r *http.Request) (any, error) {
		if err := p.end(); err != nil {
			return nil, err
		}
		tm, err := f(t, r.Context(), r.PathValue("group"), r.PathValue("id"))
		return a.shown(w, r, http.StatusOK, tm, err)
	}
}

func (a *API) listTimers(t *timers.Timers, p *params, _ http.ResponseWriter, r *http.Request) (any, error) {
	f := timers.Filter{State: timer.State(p.text("state")), DueBefore: p.time("due_before"), Limit: p.number("limit"), Cursor: p.after()}
	if p.one("slot") != "" {
		slot := p.number("slot")
		f.Slot = &slot
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	page, err := t.List(r.Context(), r.PathValue("group"), f)
	return timerPage{viewTimers(page.Timers), p.next(page.Cursor)}, err
}

func (a *API) timerHistory(t *timers.Timers, p *params, _ http.ResponseWriter, r *http.Request) (any, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	rows, err := t.History(r.Context(), r.PathValue("group"), r.PathValue("id"))
	return timerPage{Timers: viewTimers(rows)}, err
}

// timerGroups are all groups with how their timers are.
func (a *API) timerGroups(t *timers.Timers, p *params, _ http.ResponseWriter, r *http.Request) (any, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	all, err := t.Status(r.Context())
	return groupList{filled(all)}, err
}

func (a *API) timerConfig(_ http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	topic := timerTopic(p)
	if err := p.end(); err != nil {
		return nil, err
	}
	g, err := a.cfg.Registry.TimerGroup(r.Context(), topic, r.PathValue("group"))
	if errors.Is(err, registry.ErrNotFound) {
		err = &timer.Refusal{Code: timer.CodeUnknownGroup, Text: fmt.Sprintf("topic %q has no group %q", topic, r.PathValue("group"))}
	}
	return viewGroup(&g), err
}

// setTimerConfig declares a group, or replaces its settings; the slots of one that exists stay where the
// request does not name them.
func (a *API) setTimerConfig(w http.ResponseWriter, r *http.Request) (any, error) {
	p := paramsOf(r)
	topic := timerTopic(p)
	if err := p.end(); err != nil {
		return nil, err
	}
	var q groupRequest
	if err := timerBody(w, r, &q); err != nil {
		return nil, err
	}
	g, did, err := timers.ApplyGroup(r.Context(), a.cfg.Registry, topic, r.PathValue("group"), q.onto)
	if err != nil {
		return nil, err
	}
	if did == registry.Created {
		return status{http.StatusCreated, viewGroup(&g)}, nil
	}
	return viewGroup(&g), nil
}
