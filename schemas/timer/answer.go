package timer

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Kind is what an answer asks for.
type Kind int

// What answers ask for.
const (
	// Success: done.
	Success Kind = iota
	// Fail: final, no other attempt.
	Fail
	// TryAgain: another attempt, if the policy has one.
	TryAgain
	// Later: pending until Next, with all attempts left.
	Later
)

// Outcome is what a call came to.
type Outcome struct {
	Kind Kind
	// Error is a word for why it was not a success.
	Error string
	// Status of the answer, 0 without one.
	Status int
	// RetryAfter is what the answer asked for, 0 for nothing.
	RetryAfter time.Duration
	// Next is the time of a Later, unix ns.
	Next int64
}

// Words of Call.Error.
const (
	ErrTimeout      = "timeout"
	ErrUnreachable  = "unreachable"
	ErrBlocked      = "blocked-address"
	ErrHost         = "host-not-allowed"
	ErrTLS          = "tls"
	ErrAnswerSize   = "answer-too-large"
	ErrAnswerCut    = "answer-cut"
	ErrNotJSON      = "not-json"
	ErrNotOK        = "not-ok"
	ErrNextTime     = "bad-next-execute-at"
	ErrRedirect     = "redirect"
	ErrStatus       = "status"
	ErrSecret       = "no-secret"
	ErrSpecMissing  = "spec-missing"
	ErrGroupMissing = "group-missing"
)

// Answer modes of a group.
const (
	// AnswerStatus, the default: any 2xx is a success.
	AnswerStatus = "status"
	// AnswerJSON: 200 with {"ok":true} is a success.
	AnswerJSON = "json"
)

// MaxAnswerBytes is how much of an answer is read.
const MaxAnswerBytes = 64 << 10

// Classify decides what a complete answer means. now is unix ns.
func Classify(mode string, status int, header http.Header, body []byte, now int64) Outcome {
	v := Outcome{Kind: TryAgain, Status: status, RetryAfter: retryAfter(header.Get("Retry-After"), now)}
	switch {
	case status >= 200 && status <= 299 && mode != AnswerJSON:
		return Outcome{Kind: Success, Status: status}
	case status == http.StatusOK:
		return classifyBody(v, body, now)
	case status >= 300 && status <= 399:
		v.Error = ErrRedirect
	default: // of 4xx the policy decides
		v.Error = ErrStatus
	}
	return v
}

func classifyBody(v Outcome, body []byte, now int64) Outcome {
	var answer struct {
		OK   *bool   `json:"ok"`
		Next *string `json:"nextExecuteAt"`
		Also *string `json:"next_execute_at"`
	}
	if err := json.Unmarshal(bytes.TrimSpace(body), &answer); err != nil || answer.OK == nil {
		v.Error = ErrNotJSON
		return v
	}
	if *answer.OK {
		return Outcome{Kind: Success, Status: v.Status}
	}
	if answer.Next == nil {
		answer.Next = answer.Also
	}
	if answer.Next == nil {
		v.Error = ErrNotOK
		return v
	}
	t, err := time.Parse(time.RFC3339Nano, *answer.Next)
	if err != nil || t.Sub(time.Unix(0, now)) > MaxAhead {
		v.Error = ErrNextTime
		return v
	}
	v.Kind, v.Error, v.RetryAfter = Later, "", 0
	if v.Next = now; t.After(time.Unix(0, now)) {
		v.Next = t.UnixNano()
	}
	return v
}

// retryAfter reads seconds or an HTTP date; what is neither is nothing.
func retryAfter(text string, now int64) time.Duration {
	text = strings.TrimSpace(text)
	if s, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(min(max(s, 0), int64(MaxInterval/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(text); err == nil {
		return min(max(0, t.Sub(time.Unix(0, now))), MaxInterval)
	}
	return 0
}
