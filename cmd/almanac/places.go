package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// on names the volumes that have a shard; a disk that is in no volume any more by its own name.
func on(places []tables.Place) string {
	var names []string
	for _, p := range places {
		if name := cmp.Or(p.Volume, p.Disk); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// onDisk is what places take.
func onDisk(places []tables.Place) string {
	if len(places) == 0 {
		return ""
	}
	var sum uint64
	for _, p := range places {
		sum += p.Bytes
	}
	return schemas.FormatBytes(float64(sum))
}

// stored is what a topic has on a disk.
type stored struct {
	tables.Place
	Shards int `json:"shards"`
}

// storedOn sums places by disk, in the order of their names.
func storedOn(places map[schemas.Shard][]tables.Place) []stored {
	by := map[string]stored{}
	for _, each := range places {
		for _, p := range each {
			s := by[p.Disk]
			s.Place = tables.Place{Volume: p.Volume, Disk: p.Disk, Bytes: s.Bytes + p.Bytes}
			s.Shards++
			by[p.Disk] = s
		}
	}
	out := []stored{}
	for _, disk := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[disk])
	}
	return out
}

func (s stored) String() string {
	return fmt.Sprintf("%s on volume %s (disk %s), %s", counted(s.Shards, "shard"), cmp.Or(s.Volume, "of no name"), s.Disk, schemas.FormatBytes(float64(s.Bytes)))
}

// withStorage calls f with the session's ClickHouse and its storage policies; without one it does nothing.
func withStorage(ctx context.Context, c *session, f func(*tables.DB, tables.Storage) error) error {
	if c.clickhouse == "" {
		return nil
	}
	db, err := openFixed(c.endpoints)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	db.MeantFor(c.reg)
	if err := db.Establish(ctx); err != nil {
		return err
	}
	storage, err := db.Storage(ctx)
	if err != nil {
		return err
	}
	return f(db, storage)
}

var errNoClickHouse = errors.New("no ClickHouse is given")

// canCold reports the first topic whose closed shards have nowhere to move.
func canCold(storage tables.Storage, topics []schemas.Topic) error {
	for i := range topics {
		if topics[i].ColdAfterDays > 0 {
			if err := storage.CanCold(topics[i].Name); err != nil {
				return configError{err}
			}
		}
	}
	return nil
}
