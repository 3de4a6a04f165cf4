package almanac

import (
	"errors"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

var (
	// ErrConfig: the Config cannot be used.
	ErrConfig = errors.New("bad almanac.Config")
	// ErrClosed: the Client was closed.
	ErrClosed = errors.New("the client is closed")
	// ErrNoClickHouse: the Config does not name a ClickHouse, and reads need one.
	ErrNoClickHouse = errors.New("no ClickHouse is configured")
)

// Errors of the parts.
var (
	// ErrNoAlmanac: Almanac never ran on the NATS server.
	ErrNoAlmanac = registry.ErrNoRegistry
	// ErrUnknownTopic: the topic is not declared.
	ErrUnknownTopic = schemas.ErrUnknownTopic
	// ErrWrongKind: the topic is of another kind.
	ErrWrongKind = schemas.ErrWrongKind
	// ErrRequest: what was asked for can never be done; the text says why.
	ErrRequest = schemas.ErrRequest
	// ErrUnknown: no answer came, and it is not known whether the document or the timer was written. Read it.
	ErrUnknown = fronts.ErrUnknown
	// ErrFull: NATS takes no more documents or timers. Nothing was written.
	ErrFull = fronts.ErrFull
	// ErrUnreachable: ClickHouse does not answer.
	ErrUnreachable = tables.ErrUnreachable
	// ErrConflict: another program changed the same entry of the registry. Try again.
	ErrConflict = registry.ErrConflict
)
