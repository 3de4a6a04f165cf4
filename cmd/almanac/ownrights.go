package main

import (
	"context"
	"crypto/rand"
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
	"github.com/almanac-events/almanac/schemas"
)

// rightsApart is how long after an answer a part asks again what its user may do: a server may take new rights while it runs. What is lacked
// is named within 5 s.
const rightsApart = 2 * time.Second

// rightsWait is how long a question about rights, or what it found, waits for NATS.
const rightsWait = 5 * time.Second

// refusedApart is how long after a refusal a part asks again over the same connection: a server that reads its configuration again
// gives rights without a reconnect, and each refusal is a line in its log.
const refusedApart = time.Minute

// ownRights finds out which rights the NATS user of a part lacks, before the work that needs them does, and tells the operator's doctor.
type ownRights struct {
	nc   *nats.Conn
	need *access.NATSUser
	log  zerolog.Logger
	id   string // under which it tells

	found atomic.Pointer[lackedRights]
	told  *lackedRights // nil: nothing that still holds
	// It might not ask at this time, after so many reconnects; the zero time: it may.
	refused    time.Time
	reconnects uint64
}

// lackedRights is what a user lacks.
type lackedRights struct {
	user  string
	lines []string
}

func newOwnRights(part string, log zerolog.Logger) *ownRights {
	return &ownRights{need: access.NATSUserOf(part), log: log, id: rand.Text()}
}

// by has it ask over a connection from now on.
func (o *ownRights) by(nc *nats.Conn) { o.nc, o.refused = nc, time.Time{} }

// tells has the operator's doctor know what is lacked, or no longer. A right to say that may be what is lacked.
func (o *ownRights) tells(ctx context.Context, found *lackedRights) {
	if found == nil || o.told == nil && len(found.lines) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rightsWait)
	defer cancel()
	err := registry.TellLacking(ctx, o.nc, o.id, registry.Lacking{Part: o.need.Name, User: found.user, Lacks: found.lines})
	if o.told = found; err == nil && len(found.lines) == 0 {
		o.told = nil
	}
}

// Run asks until ctx ends.
func (o *ownRights) Run(ctx context.Context) error {
	for range backoff.Ticks(ctx, rightsApart) {
		o.look(ctx)
	}
	return nil
}

// look asks once. A user that may not ask asks again after a reconnect, and after refusedApart.
func (o *ownRights) look(ctx context.Context) {
	reconnects := o.nc.Stats().Reconnects
	if !o.nc.IsConnected() {
		return
	}
	if !o.refused.IsZero() && o.reconnects == reconnects && time.Since(o.refused) < refusedApart {
		o.tells(ctx, o.told)
		return
	}
	user, have, err := streams.OwnRights[access.NATSRights](ctx, o.nc)
	if errors.Is(err, streams.ErrDenied) {
		o.refused, o.reconnects = time.Now(), reconnects
		o.found.Store(nil) // what lacked before may be there now
		o.tells(ctx, &lackedRights{user: o.need.Name, lines: []string{fmt.Sprintf("publish allow %q", schemas.SubjectOwnRights)}})
	}
	if err != nil { // what was found stays; who is asked by this process says that NATS is away
		return
	}
	o.refused = time.Time{}
	now := &lackedRights{user, o.need.Lacks(have)}
	before := o.found.Swap(now)
	o.tells(ctx, now)
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
	return []ops.Reason{partial(ops.RightGone, f.of(o.need.Name))}
}

// of names what is lacked, and of which user of Almanac's table the lines are.
func (f *lackedRights) of(need string) string {
	return fmt.Sprintf("the NATS user %s lacks %s: give it the lines of the user %s that `almanac config nats` prints", f.user, strings.Join(f.lines, "; "), need)
}

// lacked names what the user of a verb lacks of its namesake's rights in Almanac's table; nil: nothing, or that is not known.
func lacked(ctx context.Context, s *settings, d endpoints) error {
	ctx, cancel := context.WithTimeout(ctx, rightsWait)
	defer cancel()
	nc, err := streams.Connect(d.nats, append(natsOptions(s, d, "cli"), nats.MaxReconnects(0))...)
	if err != nil {
		return nil //nolint:nilerr // who waits says that NATS is away
	}
	defer nc.Close()
	user, have, err := streams.OwnRights[access.NATSRights](ctx, nc)
	need := access.NATSUserOf(user)
	if err != nil || need == nil {
		return nil //nolint:nilerr // a server need not say it
	}
	if lines := need.Lacks(have); len(lines) > 0 {
		return errors.New((&lackedRights{user, lines}).of(need.Name))
	}
	return nil
}
