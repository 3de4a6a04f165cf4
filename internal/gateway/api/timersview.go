package api

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// timerPage is part of a list, or a history.
type timerPage struct {
	Timers []timerView `json:"timers"`
	Cursor string      `json:"cursor,omitempty"`
}

// timerView is a timers.Timer under the names of the API (execute_at for due), without topic and seq.
type timerView struct {
	Group           string          `json:"group"`
	ID              string          `json:"id"`
	State           timer.State     `json:"state"`
	ExecuteAt       time.Time       `json:"execute_at"`
	Revision        int64           `json:"revision"`
	Attempt         int64           `json:"attempt"`
	CallbackURL     string          `json:"callback_url,omitempty"`
	Payload         json.RawMessage `json:"payload,omitempty"`
	Bare            bool            `json:"bare,omitempty"`
	CallbackTimeout string          `json:"callback_timeout,omitempty"`
	MaxLateness     string          `json:"max_lateness,omitempty"`
	RetryPolicy     *retryRequest   `json:"retry_policy,omitempty"`
	UserID          string          `json:"user_id,omitempty"`
	Life            string          `json:"life"`
	Slot            int             `json:"slot"`
	CreatedAt       time.Time       `json:"created_at,omitzero"`
	UpdatedAt       time.Time       `json:"updated_at"`
	ExecutedAt      *time.Time      `json:"executed_at"`
	// Last is the last transition; the rest is of the last call.
	Last   timer.Op `json:"last"`
	Status int      `json:"status,omitempty"`
	Error  string   `json:"error,omitempty"`
	Detail string   `json:"detail,omitempty"`
	LateMs float64  `json:"late_ms,omitempty"`
	TookMs float64  `json:"took_ms,omitempty"`
}

// timerChanged is a timer that was changed, for who may not read it.
type timerChanged struct {
	Group    string      `json:"group"`
	ID       string      `json:"id"`
	State    timer.State `json:"state"`
	Revision int64       `json:"revision"`
}

func viewTimer(t *timers.Timer) timerView {
	return timerView{
		Group: t.Group, ID: t.ID, State: t.State, ExecuteAt: t.Due, Revision: t.Revision, Attempt: t.Attempt, CallbackURL: t.URL, Payload: t.Payload, Bare: t.Bare,
		CallbackTimeout: t.Timeout, MaxLateness: t.MaxLateness, RetryPolicy: viewPolicy(t.Retry), UserID: t.User, Life: t.Life, Slot: t.Slot,
		CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, ExecutedAt: t.ExecutedAt, Last: t.Op, Status: t.Status, Error: t.Error, Detail: t.Detail, LateMs: t.LateMs, TookMs: t.TookMs,
	}
}

func viewTimers(all []timers.Timer) []timerView {
	out := make([]timerView, len(all))
	for i := range all {
		out[i] = viewTimer(&all[i])
	}
	return out
}

// ExportTimer is a pending timer as a line of an export: what POST takes, with where it was exported.
func ExportTimer(t *timers.Timer) any {
	return struct {
		ID              string          `json:"id"`
		ExecuteAt       time.Time       `json:"execute_at"`
		CallbackURL     string          `json:"callback_url"`
		Payload         json.RawMessage `json:"payload,omitempty"`
		Bare            bool            `json:"bare,omitempty"`
		CallbackTimeout string          `json:"callback_timeout,omitempty"`
		MaxLateness     string          `json:"max_lateness,omitempty"`
		RetryPolicy     *retryRequest   `json:"retry_policy,omitempty"`
		UserID          string          `json:"user_id,omitempty"`
		Exported        Exported        `json:"exported"`
	}{t.ID, t.Due, t.URL, t.Payload, t.Bare, t.Timeout, t.MaxLateness, viewPolicy(t.Retry), t.User, Exported{t.Group, t.Revision}}
}

// ParseExported reads whose line of an export it is.
func ParseExported(line []byte) (id string, from Exported, err error) {
	var q timerRequest
	if err = decodeTimer(line, &q); err != nil {
		return "", from, fmt.Errorf("%w: it is not the JSON of a timer: %w", schemas.ErrRequest, err)
	}
	if q.Exported == nil || q.Exported.Revision < 1 {
		return "", from, fmt.Errorf("%w: it is not a line of `almanac timers export`: exported is missing", schemas.ErrRequest)
	}
	return q.ID, *q.Exported, nil
}

func viewPolicy(p *timer.Policy) *retryRequest {
	if p == nil {
		return nil
	}
	v := &retryRequest{MaxAttempts: &p.Attempts, RetryOn: p.RetryOn, MaxDuration: lengthText(p.MaxDuration), InitialInterval: lengthText(p.Initial), MaxInterval: lengthText(p.MaxInterval)}
	if p.Multiplier != 0 {
		v.BackoffMultiplier = &p.Multiplier
	}
	return v
}

func lengthText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// groupView is a group's settings as an answer has them.
type groupView struct {
	Group     string    `json:"group"`
	CreatedAt time.Time `json:"created_at"`
	groupRequest
}

func viewGroup(g *timer.Group) groupView {
	return groupView{Group: g.Name, CreatedAt: g.CreatedAt, groupRequest: groupRequest{
		Slots: &g.Slots, CallbackTimeout: lengthText(g.Timeout), RetryPolicy: viewPolicy(g.Retry), AllowHosts: g.AllowHosts, Secret: g.SecretRef,
		MaxConcurrent: g.MaxConcurrent, MaxPerSecond: g.MaxPerSecond, MaxPending: g.MaxPending, MaxBytes: g.MaxBytes, Paused: g.Paused, Answer: g.Answer, KeepDetail: g.KeepDetail,
	}}
}
