package request

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/jsonout"
)

// Error is an error as every answer in JSON has it.
type Error struct {
	Status int `json:"-"`
	// Code is a word for programs, Message and Hint are for people.
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	ID      string `json:"request_id,omitempty"`
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

// Refuse makes an error of the request's own fault.
func Refuse(status int, code, message, hint string) *Error {
	return &Error{Status: status, Code: code, Message: message, Hint: hint}
}

// ErrorOf returns err as an answer: an *Error as it is, else one of the pool's.
func ErrorOf(r *http.Request, err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		own := *e
		own.ID = ID(r)
		return &own
	}
	e = &Error{Status: pool.Status(err), Code: pool.Code(err), Message: err.Error(), ID: ID(r)}
	switch {
	case e.Status == http.StatusUnauthorized:
		e.Hint = "send a token: `Authorization: Bearer alm_…`; `almanac token add` makes one, and the data directory of an `up` has its own in local-token"
	case e.Status == http.StatusForbidden:
		e.Hint = "make a token that has the role: `almanac token add NAME`, with the role's flag"
	case errors.Is(err, pool.ErrOutcomeUnknown):
		e.Hint = "the events may be stored: send the request again with an Idempotency-Key, or accept that they may be there twice"
	case e.Status == http.StatusServiceUnavailable || e.Status == http.StatusTooManyRequests:
		e.Hint = "nothing was taken: send the same request again after Retry-After"
	case e.Status == http.StatusNotFound:
		e.Hint = "declare the topic with `almanac topics apply`, or correct its name"
	}
	return e
}

// Fail answers with an error in JSON.
func Fail(w http.ResponseWriter, r *http.Request, err error) {
	e := ErrorOf(r, err)
	Retry(w, err)
	JSON(w, e.Status, map[string]*Error{"error": e})
}

// Text answers with an error as one line of text.
func Text(w http.ResponseWriter, r *http.Request, err error) {
	Retry(w, err)
	e := ErrorOf(r, err)
	text := e.Message
	if e.Hint != "" {
		text += ": " + e.Hint
	}
	http.Error(w, text, e.Status)
}

// Retry says when to send the request again, where that helps, and ends the connection
// of a request whose outcome is not known.
func Retry(w http.ResponseWriter, err error) {
	var own *Error
	if errors.As(err, &own) {
		return
	}
	if pool.Status(err) == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if after := pool.RetryAfter(err); after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())))
	}
	if errors.Is(err, pool.ErrOutcomeUnknown) || errors.Is(err, pool.ErrDraining) {
		w.Header().Set("Connection", "close")
	}
}

// JSON answers with a value.
func JSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = jsonout.Write(w, v) // it fails where the client is gone
}
