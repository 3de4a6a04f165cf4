package tables

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/tables/watchdog"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

const (
	// engineLooks is how many new connections are asked which engine answers. Of two servers that
	// take turns, by whatever rule, all ten reach one in 2 of 1,024 cases, and then each statement still
	// asserts the engine.
	engineLooks = 10
	// adoptPause is between two looks before another engine takes a lost one's place: all of
	// them, for five seconds, must see the same empty server. A balancer that fails over is not
	// told from a server that was replaced; one that takes turns is.
	adoptPause = 500 * time.Millisecond
	// establishRounds bounds how often Establish begins again, since it made an identity or
	// another process was faster.
	establishRounds = 5
)

// Look is a server as one new connection found it.
type Look struct {
	IDs  []string // identities of engines that it has, sorted
	Rows uint64   // in the database of the tables
	// Formats are the numbers that the identities of its engines say; one that was made by hand says none.
	Formats []string
	// Server tells it from others on other machines, and from itself before a restart.
	Server  string
	Started time.Time // to the second or two
}

// Look asks a new connection which server answers.
func (db *DB) Look(ctx context.Context) (Look, error) {
	text, err := db.ask(ctx, "", sql.Server{Engines: quoted(schemas.EngineDatabase(db.Database, "")), Database: quoted(db.Database)}.SQL())
	if err != nil {
		return Look{}, err
	}
	f := strings.Split(strings.TrimSuffix(text, "\n"), "\t")
	if len(f) < 5 {
		return Look{}, fmt.Errorf("ClickHouse's answer is %q", text)
	}
	l := Look{Server: f[2]}
	for name := range strings.SplitSeq(f[0], ",") {
		if id, ok := schemas.EngineOf(db.Database, name); ok {
			l.IDs = append(l.IDs, id)
		}
	}
	for _, comment := range f[4:] {
		if number, ok := schemas.EngineFormat(comment); ok {
			l.Formats = append(l.Formats, number)
		}
	}
	if l.Rows, err = strconv.ParseUint(f[1], 10, 64); err != nil {
		return l, err
	}
	at, err := strconv.ParseInt(f[3], 10, 64)
	l.Started = time.Unix(at, 0).UTC()
	return l, err
}

// Looks asks so many new connections, one after the other.
func (db *DB) Looks(ctx context.Context, n int) (seen []Look, err error) {
	for range n {
		l, err := db.Look(ctx)
		if err != nil {
			return nil, err
		}
		seen = append(seen, l)
	}
	return seen, nil
}

// step is what Establish does next.
type step uint8

const (
	useIt     step = iota // the registry's engine answers
	takeIt                // the registry keeps no engine: this one
	adoptIt               // the registry's is gone, and this one is empty
	nameIt                // the server has no identity yet
	refuseIt              // several servers answer
	otherRows             // another engine answers, and has rows
)

// decide says what to do about an engine that the registry keeps, empty for none, and what new
// connections found.
func decide(kept string, seen []Look) (do step, id string) {
	var common []string // identities that all have
	some, rows, with := false, uint64(0), 0
	for i, l := range seen {
		if i == 0 {
			common = l.IDs
		} else {
			common = slices.DeleteFunc(slices.Clone(common), func(id string) bool { return !slices.Contains(l.IDs, id) })
		}
		if slices.Contains(l.IDs, kept) {
			with++
		}
		some, rows = some || len(l.IDs) > 0, max(rows, l.Rows)
	}
	switch {
	case kept != "" && with == len(seen):
		return useIt, kept
	case with > 0, some && len(common) == 0:
		return refuseIt, ""
	case kept != "" && rows > 0:
		return otherRows, ""
	case len(common) == 0:
		return nameIt, ""
	case kept == "":
		return takeIt, common[0]
	}
	return adoptIt, common[0]
}

// beingNamed reports whether servers that differ may be one that another process named between
// two looks: none is the one that the registry keeps, and they differ by having no identity alone.
func beingNamed(kept string, seen []Look) bool {
	var named []Look
	for _, l := range seen {
		if slices.Contains(l.IDs, kept) {
			return false
		}
		if len(l.IDs) > 0 {
			named = append(named, l)
		}
	}
	_, id := decide("", named)
	return id != ""
}

// Establish finds out that the engine which has the cluster's rows answers, and no other, and that its tables have this
// Almanac's format (schemas.ErrFormat). The
// first engine of a cluster is named and chosen, and so is an empty one that took the place of
// a lost one. ErrOtherEngine: another answers, or several; then requests fail with that until
// Establish succeeds. While the engine is not in doubt it sends no request.
func (db *DB) Establish(ctx context.Context) error {
	if db.Established() {
		return nil
	}
	id, err := db.establish(ctx, false)
	db.pin.conclude(id, err)
	return err
}

// Adopt makes the engine that answers the one which has the cluster's rows, whatever it has. It
// returns the engine that was so before, empty when it was this one.
func (db *DB) Adopt(ctx context.Context) (before string, err error) {
	before, _, err = db.pin.keeper().Engine(ctx)
	if err != nil {
		return "", err
	}
	id, err := db.establish(ctx, true)
	db.pin.conclude(id, err)
	if id == before {
		before = ""
	}
	return before, err
}

func (db *DB) establish(ctx context.Context, whatever bool) (string, error) {
	engines := db.pin.keeper()
	for round := range establishRounds {
		if err := db.breaker.Check(ctx); err != nil {
			return "", err
		}
		kept, rev, err := engines.Engine(ctx)
		if err != nil {
			return "", err
		}
		seen, err := db.looked(ctx, engineLooks)
		if err != nil {
			return "", err
		}
		if err := db.decideFormat(seen); err != nil {
			return "", err
		}
		do, id := decide(kept, seen)
		if do == otherRows && whatever {
			do, id = decide("", seen)
		}
		switch do {
		case useIt:
			return id, nil
		case refuseIt, otherRows:
			if do == refuseIt && round+1 < establishRounds && beingNamed(kept, seen) {
				continue
			}
			return "", db.otherEngine(kept, seen, do)
		case nameIt:
			if err := db.nameEngine(ctx); err != nil {
				return "", err
			}
			continue
		case adoptIt:
			if same, err := db.stays(ctx, kept, id); err != nil || !same {
				if err != nil {
					return "", err
				}
				continue
			}
		case takeIt:
		}
		if err := engines.SetEngine(ctx, id, rev); err == nil {
			return id, nil
		} else if now, _, again := engines.Engine(ctx); again != nil || now == kept {
			return "", err
		}
	}
	return "", &otherEngine{fmt.Sprintf("which server answers at %s changes from one moment to the next", db.base)}
}

// decideFormat compares the numbers that servers have with that of this Almanac, as the registry does with NATS's.
func (db *DB) decideFormat(seen []Look) error {
	for _, l := range seen {
		for _, number := range l.Formats {
			if number != strconv.Itoa(schemas.Format) {
				return fmt.Errorf("%w: ClickHouse at %s has format %q, this Almanac reads format %d: run the Almanac that made it, or give this one a NATS and a ClickHouse of its own",
					schemas.ErrFormat, db.base, number, schemas.Format)
			}
		}
	}
	return nil
}

// stays reports whether an empty engine that would take a lost one's place is still all that
// answers after a while.
func (db *DB) stays(ctx context.Context, kept, id string) (bool, error) {
	for range engineLooks {
		if err := backoff.Sleep(ctx, adoptPause); err != nil {
			return false, err
		}
		seen, err := db.looked(ctx, 1)
		if err != nil {
			return false, err
		}
		if do, now := decide(kept, seen); do != adoptIt || now != id {
			return false, nil
		}
	}
	return true, nil
}

// looked is Looks, of which a connection without an answer counts as a server that is away.
func (db *DB) looked(ctx context.Context, n int) ([]Look, error) {
	seen, err := db.Looks(ctx, n)
	if err != nil && ctx.Err() == nil && !errors.As(err, new(*Error)) {
		db.breaker.Failed(err)
		err = &watchdog.Unanswered{Reason: err}
	}
	return seen, err
}

// nameEngine gives the server that answers an identity.
func (db *DB) nameEngine(ctx context.Context) error {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: see its documentation
	name := schemas.EngineDatabase(db.Database, hex.EncodeToString(b[:]))
	_, err := db.ask(ctx, "", fmt.Sprintf("CREATE DATABASE IF NOT EXISTS %s ENGINE = Atomic COMMENT '%s'", sql.QuoteName(name), quoted(schemas.EngineComment())))
	if err != nil {
		return fmt.Errorf("naming the server: %w", err)
	}
	return nil
}

// otherEngine says what stands behind the address, and what to do.
func (db *DB) otherEngine(kept string, seen []Look, why step) error {
	if why == otherRows {
		return &otherEngine{fmt.Sprintf("the server at %s has %d rows in database %s and is not engine %s, where this cluster's rows are. "+
			"Give the address of that one, or, if this one is to take its place, run `almanac repair --adopt-engine`", db.base, seen[0].Rows, db.Database, kept)}
	}
	by := map[string]int{}
	for _, l := range seen {
		by[strings.Join(l.IDs, "+")]++
	}
	return &otherEngine{fmt.Sprintf("%d different servers answer at %s, as behind a load balancer, and each would have a part of the rows. "+
		"Nothing is stored until one server answers there: give its own address", len(by), db.base)}
}
