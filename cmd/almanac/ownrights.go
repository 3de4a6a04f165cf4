package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/ops"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
)

// rightsApart is how long after an answer a part asks again what its user may do: a server may take new rights while it runs.
const rightsApart = 5 * time.Second

// ownRights finds out which rights the NATS user of a part lacks, before the work that needs them does.
type ownRights struct {
	nc   *nats.Conn
	need *access.NATSUser
	log  zerolog.Logger

	reg    atomic.Pointer[registry.Registry] // its leases tell the others
	found  atomic.Pointer[lackedRights]
	denied uint64 // one more than the connection's reconnects when it might not ask; 0: it may
}

// lackedRights is what a user lacks.
type lackedRights struct {
	user  string
	lines []string
}

func newOwnRights(nc *nats.Conn, part string, log zerolog.Logger) *ownRights {
	return &ownRights{nc: nc, need: access.NATSUserOf(part), log: log}
}

// tells has the leases of a registry's members say what is lacked.
func (o *ownRights) tells(reg *registry.Registry) {
	o.reg.Store(reg)
	if f := o.found.Load(); f != nil {
		reg.Lacks(f.lines)
	}
}

// Run asks until ctx ends.
func (o *ownRights) Run(ctx context.Context) error {
	for range backoff.Ticks(ctx, rightsApart) {
		o.look(ctx)
	}
	return nil
}

// look asks once. A user that may not ask was refused once for it, and asks again after a reconnect: rights change with one.
func (o *ownRights) look(ctx context.Context) {
	reconnects := o.nc.Stats().Reconnects + 1
	if o.denied == reconnects || !o.nc.IsConnected() {
		return
	}
	user, have, err := streams.OwnRights[access.NATSRights](ctx, o.nc)
	if errors.Is(err, streams.ErrDenied) {
		o.denied = reconnects
		o.found.Store(nil) // what lacked before may be there now
		if reg := o.reg.Load(); reg != nil {
			reg.Lacks(nil)
		}
	}
	if err != nil { // what was found stays; who is asked by this process says that NATS is away
		return
	}
	o.denied = 0
	now := &lackedRights{user, o.need.Lacks(have)}
	before := o.found.Swap(now)
	if reg := o.reg.Load(); reg != nil {
		reg.Lacks(now.lines)
	}
	if before == nil && len(now.lines) == 0 || before != nil && slices.Equal(before.lines, now.lines) {
		return
	}
	if len(now.lines) == 0 {
		o.log.Info().Str("user", user).Msg("nats: the user has all rights that it needs")
		return
	}
	o.log.Error().Str("user", user).Strs("lacks", now.lines).Msg("nats: the user may not do what this part needs: give it the lines of the user " + o.need.Name + " that `almanac config nats` prints")
}

// trouble is what the last answer says; nothing before there was a connection.
func (o *ownRights) trouble() []ops.Reason {
	if o == nil {
		return nil
	}
	f := o.found.Load()
	if f == nil || len(f.lines) == 0 {
		return nil
	}
	return []ops.Reason{partial(ops.RightGone, fmt.Sprintf("the NATS user %s lacks %s: give it the lines of the user %s that `almanac config nats` prints", f.user, strings.Join(f.lines, "; "), o.need.Name))}
}
