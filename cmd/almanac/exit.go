package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/send"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

var (
	// errSaid: the verb has printed what went wrong; only the code is missing.
	errSaid = errors.New("failed, see above")
	// errPartial: some of it was done, some was not; both were printed.
	errPartial = errors.New("done in part, see above")
	// errInterrupted: a signal ended the work before it was done.
	errInterrupted = errors.New("interrupted")
)

// usageError is what the user typed and could type otherwise.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// configError is a setting that cannot be used, wherever it came from.
type configError struct{ error }

func (e configError) Unwrap() error { return e.error }

// exitCode is the code of an outcome; by is the signal that ended the work, or
// nil. A server that SIGTERM ended in order did what it was told: 0.
func exitCode(err error, by os.Signal) int {
	switch {
	case err == nil && by == os.Interrupt:
		return exitInterrupted
	case err == nil:
		return exitOK
	case by != nil && (errors.Is(err, errInterrupted) || errors.Is(err, send.ErrInterrupted) || errors.Is(err, context.Canceled) || errors.As(err, new(stopped))),
		by == os.Interrupt && !errors.Is(err, errPartial): // whatever broke off, in whichever library's words
		return exitInterrupted
	case errors.Is(err, errPartial):
		return exitPartial
	case isConflict(err):
		return exitConflict
	case errors.Is(err, embedded.ErrHung):
		return exitHung
	case errors.As(err, new(configError)), errors.Is(err, embedded.ErrNotLoopback), errors.Is(err, tables.ErrDSN), errors.Is(err, schemas.ErrFormat), errors.Is(err, embedded.ErrDirVersion), errors.Is(err, embedded.ErrNoEngine):
		return exitConfig
	case errors.As(err, new(usageError)), errors.Is(err, schemas.ErrRequest), errors.As(err, new(*filter.Error)),
		errors.Is(err, timer.ErrInput), errors.Is(err, schemas.ErrTopicName), errors.Is(err, schemas.ErrUnknownTopic), errors.Is(err, schemas.ErrTopic), errors.Is(err, schemas.ErrTopicChange):
		return exitUsage
	}
	return exitFailed
}

// isConflict reports whether nothing was done because of what is there, as HTTP's 409, 412 and 423 say of the same errors.
func isConflict(err error) bool {
	return slices.ContainsFunc([]error{
		documents.ErrExists, documents.ErrVersion, documents.ErrLocked, documents.ErrPath, documents.ErrBusy,
		timer.ErrExists, timer.ErrRevision, timer.ErrFiring, timer.ErrState, fronts.ErrConflict, registry.ErrGroupChange,
	}, func(is error) bool { return errors.Is(err, is) })
}

// formatError returns an error as people read it: a filter with a caret below the place.
func formatError(err error) string {
	said := inWords(err)
	if f := (*filter.Error)(nil); errors.As(err, &f) {
		said = strings.Replace(said, f.Error(), f.Render(), 1)
	}
	if refused := (*tables.Error)(nil); errors.As(err, &refused) && refused.Syntax() {
		said += " `almanac sql --help` has examples."
	}
	return "almanac: " + said
}

// stopped is why a context ended: the signal.
type stopped struct{ os.Signal }

func (s stopped) Error() string { return "stopped by " + s.String() }

// untilSignal is a context that the first SIGINT or SIGTERM ends. The second
// ends the process: a user who asks twice does not want to wait.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cancel(stopped{<-signals})
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
	}
}

// stopCause is the signal that ended ctx, or nil.
func stopCause(ctx context.Context) os.Signal {
	if s := (stopped{}); errors.As(context.Cause(ctx), &s) {
		return s.Signal
	}
	return nil
}
