package pool

import (
	"errors"
	"net/http"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/schemas"
)

// Why a request is not answered with success.
var (
	// ErrBusy: other requests hold all bytes there are. Nothing was taken.
	ErrBusy = errors.New("the gateway is busy")
	// ErrStalled: the stream takes no events. Nothing was taken.
	ErrStalled = errors.New("events cannot be stored now")
	// ErrDraining: this process ends. Nothing was taken.
	ErrDraining = errors.New("this gateway is stopping")
	// ErrTooLarge: the request is larger than any may be. Nothing was taken.
	ErrTooLarge = errors.New("request too large")
	// ErrTopics: too many topics are in use at once. Nothing was taken.
	ErrTopics = errors.New("too many topics")
	// ErrNoKey: the topic hashes fields, and this process does not have the key. Nothing was taken, and sending again does
	// not help.
	ErrNoKey = errors.New("no privacy key")
	// ErrOutcomeUnknown: events were taken, and whether they are stored is not known.
	ErrOutcomeUnknown = errors.New("outcome unknown")
)

// Status returns the HTTP status of an error that a request ended with.
func Status(err error) int {
	if denied := (*access.Denied)(nil); errors.As(err, &denied) {
		if denied.Name == "" && !denied.Own {
			return http.StatusUnauthorized
		}
		return http.StatusForbidden
	}
	switch {
	case errors.As(err, new(*RateError)):
		return http.StatusTooManyRequests
	case errors.Is(err, access.ErrUnauthenticated):
		return http.StatusUnauthorized
	case errors.Is(err, ErrBusy), errors.Is(err, ErrTopics):
		return http.StatusTooManyRequests
	case errors.Is(err, ErrStalled), errors.Is(err, ErrDraining), errors.Is(err, ErrOutcomeUnknown):
		return http.StatusServiceUnavailable
	case errors.Is(err, ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, schemas.ErrUnknownTopic):
		return http.StatusNotFound
	case errors.Is(err, schemas.ErrTopicName):
		return http.StatusBadRequest
	case errors.Is(err, ErrNoKey):
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

// RetryAfter returns how long a client should wait before it sends the request again;
// 0 where that does not help.
func RetryAfter(err error) time.Duration {
	if rate := (*RateError)(nil); errors.As(err, &rate) {
		return (rate.Wait + time.Second - 1).Truncate(time.Second)
	}
	switch Status(err) {
	case http.StatusTooManyRequests:
		return time.Second
	case http.StatusServiceUnavailable:
		return 2 * time.Second
	}
	return 0
}

// Code returns an error's word in answers.
func Code(err error) string {
	switch Status(err) {
	case http.StatusUnauthorized:
		return "unauthenticated"
	case http.StatusForbidden:
		return "denied"
	}
	if errors.As(err, new(*RateError)) {
		return "rate"
	}
	for _, c := range []struct {
		err  error
		word string
	}{
		{ErrBusy, "busy"}, {ErrTopics, "too_many_topics"}, {ErrStalled, "stalled"}, {ErrDraining, "draining"},
		{ErrOutcomeUnknown, "outcome_unknown"}, {ErrNoKey, "no_privacy_key"}, {ErrTooLarge, "too_large"},
		{schemas.ErrUnknownTopic, "unknown_topic"}, {schemas.ErrTopicName, "bad_topic_name"},
	} {
		if errors.Is(err, c.err) {
			return c.word
		}
	}
	return "failed"
}
