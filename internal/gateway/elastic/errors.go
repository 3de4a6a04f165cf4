package elastic

import (
	"errors"
	"fmt"
	"net/http"
)

var (
	// ErrBulk: a body is not a bulk request.
	ErrBulk = errors.New("not a bulk request")
	// ErrTooLarge: a bulk request has too many items.
	ErrTooLarge = errors.New("bulk request too large")
)

// Error is a refusal as Elasticsearch words it.
type Error struct {
	Status       int
	Type, Reason string
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %s (status %d)", e.Type, e.Reason, e.Status) }

// The refusals of one item.

func badDocument(err error) *Error {
	return &Error{http.StatusBadRequest, "document_parsing_exception", err.Error()}
}

func unknownIndex(index string) *Error {
	return &Error{http.StatusNotFound, "index_not_found_exception",
		fmt.Sprintf("no such index [%s]: no topic has this name; declare one with almanac topics apply", index)}
}

func noIndex() *Error {
	return &Error{http.StatusBadRequest, "action_request_validation_exception",
		"index is missing: neither the action nor the path names one"}
}

func noUpdates(action string) *Error {
	return &Error{http.StatusBadRequest, "illegal_argument_exception",
		fmt.Sprintf("%s is not supported: events do not change; send index or create", action)}
}

// Invalid refuses an item whose event breaks a limit.
func Invalid(err error) *Error { return badDocument(err) }

// Busy refuses an item that the client should send again later.
func Busy(reason string) *Error {
	return &Error{http.StatusTooManyRequests, "es_rejected_execution_exception", reason}
}

// Denied refuses an item whose topic the client may not write.
func Denied(err error) *Error {
	return &Error{http.StatusForbidden, "security_exception", err.Error()}
}
