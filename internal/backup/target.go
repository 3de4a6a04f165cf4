package backup

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// target is what the servers of a restore have before it begins.
type target struct {
	// begun: NATS says that a restore is under way, of what. bucket: it is the restored registry that says so, which comes last.
	begun, bucket bool
	of            string
	// marked: ClickHouse says so, of what.
	marked   bool
	markedOf string

	streams []string // of those that a backup has
	tables  []tables.Held
}

// look reads the servers.
func (c *RestoreConfig) look(ctx context.Context, js jetstream.JetStream, m *Manifest) (t target, err error) {
	if t.of, t.bucket, err = registry.Restoring(ctx, js); err != nil {
		return t, err
	}
	t.begun = t.of != ""
	for i := range m.Streams {
		_, err := streams.Open(ctx, js, m.Streams[i].Name)
		switch {
		case err == nil:
			t.streams = append(t.streams, m.Streams[i].Name)
		case !errors.Is(err, jetstream.ErrStreamNotFound):
			return t, fmt.Errorf("backup: stream %s: %w", m.Streams[i].Name, err)
		}
	}
	if t.marked, err = c.DB.BeingRestored(ctx); err != nil {
		return t, err
	}
	if t.markedOf, err = c.DB.RestoredFrom(ctx); err != nil {
		return t, err
	}
	t.tables, err = c.DB.All(ctx)
	return t, err
}

// admits decides whether a backup may be put into a target, and whether all of it is there already, so that only the end of the restore is
// left. What a server has is the restore's own only where that server says so.
func (t *target) admits(name string) (whole bool, err error) {
	for _, of := range []struct {
		is  bool
		who string
	}{{t.begun, t.of}, {t.marked, t.markedOf}} {
		if of.is && of.who != name {
			return false, fmt.Errorf("%w: a restore of %s was begun there: end that one, by its file, or name servers that have nothing of Almanac", ErrNotEmpty, of.who)
		}
	}
	if t.bucket {
		return true, nil
	}
	for _, stream := range t.streams {
		if !t.begun || stream == schemas.KVStream {
			return false, notEmpty("the stream " + stream)
		}
	}
	if len(t.tables) > 0 && !t.marked {
		return false, notEmpty("the table " + t.tables[0].Name)
	}
	return false, nil
}

func notEmpty(has string) error {
	return fmt.Errorf("%w: it has %s. Nothing was changed: name servers or a data directory that have nothing of Almanac", ErrNotEmpty, has)
}
