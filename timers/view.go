package timers

import (
	"encoding/json"
	"time"

	archive "github.com/almanac-events/almanac/internal/query/timers"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Timer is a timer as it is read.
type Timer struct {
	Topic    string      `json:"topic"`
	Group    string      `json:"group"`
	ID       string      `json:"id"`
	State    timer.State `json:"state"`
	Due      time.Time   `json:"due"`
	Revision int64       `json:"revision"`
	Attempt  int64       `json:"attempt"`
	// Op is the last transition.
	Op      timer.Op        `json:"op"`
	URL     string          `json:"callback_url,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Bare    bool            `json:"bare,omitempty"` // the payload alone is the body
	Timeout string          `json:"callback_timeout,omitempty"`
	Retry   *timer.Policy   `json:"retry_policy,omitempty"`
	// MaxLateness after which it is too late to call.
	MaxLateness string    `json:"max_lateness,omitempty"`
	User        string    `json:"user_id,omitempty"`
	Life        string    `json:"life"`
	Slot        int       `json:"slot"`
	CreatedAt   time.Time `json:"created_at,omitzero"`
	UpdatedAt   time.Time `json:"updated_at"`
	// ExecutedAt is when the timer was done or failed; nil before that, and for one that was cancelled.
	ExecutedAt *time.Time `json:"executed_at"`
	// Status, Error and the rest are of the last call.
	Status int     `json:"status,omitempty"`
	Error  string  `json:"error,omitempty"`
	Detail string  `json:"detail,omitempty"`
	LateMs float64 `json:"late_ms,omitempty"`
	TookMs float64 `json:"took_ms,omitempty"`
	// Seq is the sequence of the record in TIMERS.
	Seq uint64 `json:"seq"`

	spec *timer.Spec
}

func view(r *timer.Record) Timer {
	t := Timer{
		Topic: r.Key.Topic, Group: r.Key.Group, ID: r.Key.ID, State: r.State(), Op: r.Op, Due: at(r.Due), Revision: r.Revision, Attempt: r.Attempt,
		User: r.User, Life: r.Life.String(), Slot: r.Key.Slot, CreatedAt: at(r.CreatedAt), UpdatedAt: at(r.Changed),
		Status: r.Call.Status, Error: r.Call.Error, Detail: r.Call.Detail, Seq: r.Seq,
		LateMs: float64(r.Call.Late.Microseconds()) / 1000, TookMs: float64(r.Call.Took.Microseconds()) / 1000,
	}
	t.executed()
	t.describe(r.Spec)
	return t
}

// transition is a timer as a stored transition left it.
func transition(key schemas.TimerKey, r *archive.Row) Timer {
	op := timer.Op(r.State)
	t := Timer{
		Topic: key.Topic, Group: key.Group, ID: key.ID, Op: op, State: op.State(), Due: time.Unix(0, r.Due).UTC(),
		Revision: r.Revision, Attempt: r.Attempt, Life: r.Life, Slot: r.Slot, User: r.User, UpdatedAt: time.Unix(0, r.Ts).UTC(),
		Status: r.Status, Error: r.Error, Detail: r.Detail, TookMs: r.TookMs, LateMs: r.LateMs, Seq: r.Seq,
	}
	t.executed()
	var s timer.Spec
	if r.Spec != "" && json.Unmarshal([]byte(r.Spec), &s) == nil {
		t.describe(&s)
	}
	return t
}

// executed sets when the timer was done or failed, by its last transition.
func (t *Timer) executed() {
	if t.State == timer.StateDone || t.State == timer.StateFailed {
		at := t.UpdatedAt
		t.ExecutedAt = &at
	}
}

// describe fills in what the spec says.
func (t *Timer) describe(s *timer.Spec) {
	if s == nil {
		return
	}
	t.spec = s
	t.URL, t.Payload, t.Bare, t.Retry = s.URL, s.Payload, s.Bare, s.Retry
	t.Timeout, t.MaxLateness = "", ""
	if s.Timeout > 0 {
		t.Timeout = s.Timeout.String()
	}
	if s.MaxLateness > 0 {
		t.MaxLateness = s.MaxLateness.String()
	}
}

func viewOf(r *timer.Record, err error) (Timer, error) {
	if err != nil {
		return Timer{}, err
	}
	return view(r), nil
}

func at(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

// fromRows is a timer by its history, oldest first.
func fromRows(rows []Timer) Timer {
	last := rows[len(rows)-1]
	for i := range rows {
		if rows[i].Life != last.Life {
			continue
		}
		if rows[i].Op == timer.Created {
			last.CreatedAt = rows[i].UpdatedAt
		}
		last.describe(rows[i].spec)
	}
	return last
}

// recordOf is the record of a timer that left the front, as its rows have it. It has no sequence: what follows
// it is the first record of its key.
func recordOf(key schemas.TimerKey, rows []Timer) (*timer.Record, error) {
	last := fromRows(rows)
	life, err := schemas.ParseID(last.Life)
	if err != nil {
		return nil, err
	}
	return &timer.Record{
		Key: key, Op: last.Op, Changed: last.UpdatedAt.UnixNano(), CreatedAt: last.CreatedAt.UnixNano(), Life: life, Revision: last.Revision,
		Attempt: last.Attempt, Due: last.Due.UnixNano(), Spec: last.spec, Host: last.spec.Host(), User: last.User,
	}, nil
}
