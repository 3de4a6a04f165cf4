package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// timerRequest is the body of a creation or a change. A change leaves what is absent as it is. Members may
// also have the names of the system that such clients come from: executeAt, maxRetries (one
// less than max_attempts). Answers have the names that stand here.
type timerRequest struct {
	ID              string          `json:"id"`
	ExecuteAt       *string         `json:"execute_at"`
	CallbackURL     *string         `json:"callback_url"`
	Payload         json.RawMessage `json:"payload"`
	Bare            *bool           `json:"bare"`
	CallbackTimeout *string         `json:"callback_timeout"`
	MaxLateness     *string         `json:"max_lateness"`
	RetryPolicy     *retryRequest   `json:"retry_policy"`
	UserID          string          `json:"user_id"`
	Replace         bool            `json:"replace"`
	Exported        *Exported       `json:"exported"`
}

// Exported says where a timer was exported. It is called late where its time has passed, and not again where a timer of
// its id and content is there, over or not.
type Exported struct {
	Group    string `json:"group"`
	Revision int64  `json:"revision"`
}

type retryRequest struct {
	MaxAttempts       *int     `json:"max_attempts,omitempty"`
	MaxRetries        *int     `json:"max_retries,omitempty"`
	MaxDuration       string   `json:"max_duration,omitempty"`
	InitialInterval   string   `json:"initial_interval,omitempty"`
	BackoffMultiplier *float64 `json:"backoff_multiplier,omitempty"`
	MaxInterval       string   `json:"max_interval,omitempty"`
	RetryOn           []int    `json:"retry_on,omitempty"`
}

// otherNames are names of members beside their spelling with capitals.
var otherNames = map[string]string{"timer_id": "id", "due": "execute_at"}

// maxTimerBody bounds a body: the payload as it may be, with white space, and the rest.
const maxTimerBody = 2 * (timer.MaxPayloadBytes + 16<<10)

// timerBody reads a request's JSON by any of the names of its members.
func timerBody(w http.ResponseWriter, r *http.Request, into any) error {
	in := request.Pace(w, r)
	defer func() { _ = in.Close() }()
	data, err := io.ReadAll(http.MaxBytesReader(w, in, maxTimerBody))
	if broken := in.Broken(); broken != nil {
		return broken
	}
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return request.Refuse(http.StatusRequestEntityTooLarge, string(timer.CodePayloadSize), fmt.Sprintf("the request may have %d bytes, and its payload %d", maxTimerBody, timer.MaxPayloadBytes), "")
	}
	if err == nil {
		err = decodeTimer(data, into)
	}
	if err != nil {
		return request.Refuse(http.StatusBadRequest, "bad_json", "the body is not the JSON that is expected: "+err.Error(), "/openapi.yaml says what is")
	}
	return nil
}

func decodeTimer(data []byte, into any) error {
	data, err := renamed(data, "retry_policy")
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// MaxTimerBody bounds the JSON of a timer.
const MaxTimerBody = maxTimerBody

// ParseTimer reads the timer that the JSON of a creation asks for, as a request's body has it.
func ParseTimer(data []byte, group string, now time.Time) (timers.Draft, error) {
	var q timerRequest
	if err := decodeTimer(data, &q); err != nil {
		return timers.Draft{}, fmt.Errorf("%w: it is not the JSON of a timer: %w", schemas.ErrRequest, err)
	}
	return q.creation(group, now)
}

// renamed gives the members of an object their own names, and those of its member nested. Two
// names of one member are an error.
func renamed(data []byte, nested string) ([]byte, error) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(data, &in); err != nil {
		return nil, err
	}
	out := make(map[string]json.RawMessage, len(in))
	for key, value := range in {
		name := snake(key)
		if other, ok := otherNames[name]; ok {
			name = other
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("it has %s under two names", name)
		}
		if name == nested && string(value) != "null" {
			var err error
			if value, err = renamed(value, ""); err != nil {
				return nil, err
			}
		}
		out[name] = value
	}
	return json.Marshal(out)
}

// snake is executeAt as execute_at, and callbackURL as callback_url.
func snake(name string) string {
	var b strings.Builder
	low := false
	for _, r := range name {
		if unicode.IsUpper(r) && low {
			b.WriteByte('_')
		}
		low = unicode.IsLower(r) || unicode.IsDigit(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// length reads a length of time; 0 where it is absent.
func length(code timer.Code, name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, ok := schemas.ParseSpan(text)
	if !ok || d <= 0 {
		return 0, &timer.Refusal{Code: code, Text: fmt.Sprintf("%s is %q; expected a length of time such as 30s", name, text)}
	}
	return d, nil
}

func (q *retryRequest) policy() (*timer.Policy, error) {
	if q == nil {
		return nil, nil
	}
	p := &timer.Policy{RetryOn: q.RetryOn}
	switch {
	case q.MaxAttempts != nil && q.MaxRetries != nil:
		return nil, &timer.Refusal{Code: timer.CodeAttempts, Text: "give max_attempts or max_retries, not both"}
	case q.MaxAttempts != nil:
		p.Attempts = *q.MaxAttempts
	case q.MaxRetries != nil:
		p.Attempts = *q.MaxRetries + 1
	}
	if q.BackoffMultiplier != nil {
		if p.Multiplier = *q.BackoffMultiplier; p.Multiplier == 0 {
			p.Multiplier = -1 // 0 would be the default; what was given is refused
		}
	}
	var err [3]error
	p.Initial, err[0] = length(timer.CodeInterval, "initial_interval", q.InitialInterval)
	p.MaxInterval, err[1] = length(timer.CodeInterval, "max_interval", q.MaxInterval)
	p.MaxDuration, err[2] = length(timer.CodeDuration, "max_duration", q.MaxDuration)
	if err := errors.Join(err[:]...); err != nil {
		return nil, err
	}
	return p, p.Validate()
}

// change is what a request changes.
func (q *timerRequest) change(now time.Time) (c timers.Change, err error) {
	if q.ID != "" || q.UserID != "" || q.Replace || q.Exported != nil {
		return c, request.Refuse(http.StatusBadRequest, "bad_request", "id, user_id, replace and exported cannot be changed", "delete the timer and create another")
	}
	if q.ExecuteAt != nil {
		due, err := timer.ParseDue(*q.ExecuteAt, now)
		if err != nil {
			return c, err
		}
		c.Due = &due
	}
	c.URL = q.CallbackURL
	if q.Payload != nil {
		c.Payload = &q.Payload
	}
	c.Bare = q.Bare
	if q.CallbackTimeout != nil {
		d, err := timer.ParseTimeout(*q.CallbackTimeout)
		if err != nil {
			return c, err
		}
		c.Timeout = &d
	}
	if q.MaxLateness != nil {
		d, err := length(timer.CodeLateness, "max_lateness", *q.MaxLateness)
		if err != nil {
			return c, err
		}
		c.MaxLateness = &d
	}
	c.Retry, err = q.RetryPolicy.policy()
	return c, err
}

// creation is the timer that a request asks for.
func (q *timerRequest) creation(group string, now time.Time) (timers.Draft, error) {
	plain := *q
	plain.ID, plain.UserID, plain.Replace, plain.Exported = "", "", false, nil
	if plain.ExecuteAt == nil {
		plain.ExecuteAt = new(string) // it is missing, and refused as such
	}
	c, err := plain.change(now)
	if err != nil {
		return timers.Draft{}, err
	}
	n := timers.Draft{Group: group, ID: q.ID, Due: *c.Due, User: q.UserID, Replace: q.Replace, After: timer.AfterOf(*plain.ExecuteAt), Moved: q.Exported != nil}
	n.Take(c)
	return n, nil
}

// groupRequest is the body of a group's settings.
type groupRequest struct {
	Slots           *int          `json:"slots,omitempty"`
	CallbackTimeout string        `json:"callback_timeout,omitempty"`
	RetryPolicy     *retryRequest `json:"retry_policy,omitempty"`
	AllowHosts      []string      `json:"allow_hosts,omitempty"`
	Secret          string        `json:"secret,omitempty"`
	MaxConcurrent   int           `json:"max_concurrent,omitempty"`
	MaxPerSecond    int           `json:"max_per_second,omitempty"`
	MaxPending      int           `json:"max_pending,omitempty"`
	MaxBytes        int64         `json:"max_bytes,omitempty"`
	Paused          bool          `json:"paused,omitempty"`
	Answer          string        `json:"answer,omitempty"`
	KeepDetail      bool          `json:"keep_detail,omitempty"`
}

// onto gives a group these settings.
func (q *groupRequest) onto(g *timer.Group) error {
	policy, err := q.RetryPolicy.policy()
	if err != nil {
		return err
	}
	timeout, err := length(timer.CodeTimeout, "callback_timeout", q.CallbackTimeout)
	if err != nil {
		return err
	}
	if q.Slots != nil {
		if err := schemas.ValidateTimerSlots(*q.Slots); err != nil { // 0 would be the default
			return &timer.Refusal{Code: timer.CodeSlots, Text: err.Error()}
		}
		g.Slots = *q.Slots
	}
	g.Retry, g.Timeout, g.AllowHosts, g.SecretRef = policy, timeout, q.AllowHosts, q.Secret
	g.MaxConcurrent, g.MaxPerSecond, g.MaxPending, g.MaxBytes = q.MaxConcurrent, q.MaxPerSecond, q.MaxPending, q.MaxBytes
	g.Paused, g.Answer, g.KeepDetail = q.Paused, q.Answer, q.KeepDetail
	return nil
}
