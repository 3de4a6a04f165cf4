package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// streamOf is the stream of a store of NATS.
func streamOf(store string) string {
	switch store {
	case storeRegistry:
		return schemas.KVStream
	case storeCopies:
		return schemas.CopiesStream
	}
	return store
}

// putAll makes each store what the cell says, while NATS is down.
func (h *pairCluster) putAll() {
	h.t.Helper()
	if h.cell.state("EVENTS") == putPurged {
		h.purgeRouted()
	}
	h.stop()
	for _, store := range append([]string{storeCopies}, pairedStores...) {
		state := h.cell.state(store)
		switch {
		case state == "", state == putPurged:
		case store == storeClickHouse:
			h.putTables(state)
		case store == storeSpool:
			h.putDir(h.spool, h.olderSpool, state)
		default:
			dirs, err := filepath.Glob(filepath.Join(h.dir, "jetstream", "*", "streams", streamOf(store)))
			if err != nil || len(dirs) != 1 {
				h.t.Fatalf("%s is in %v: %v", store, dirs, err)
			}
			rel, err := filepath.Rel(h.dir, dirs[0])
			h.must(err)
			h.putDir(dirs[0], filepath.Join(h.older, rel), state)
		}
	}
	h.run()
}

// purgeRouted takes out of EVENTS what a janitor does once it is old enough: all that was routed, but for the last
// message of each lane.
func (h *pairCluster) purgeRouted() {
	h.t.Helper()
	s, err := h.js().Stream(h.t.Context(), schemas.StreamEvents)
	h.must(err)
	routed, err := streams.Checkpoints(h.t.Context(), h.js(), "app")
	h.must(err)
	for lane, cp := range routed {
		h.must(s.Purge(h.t.Context(), jetstream.WithPurgeSubject(schemas.LaneFilter("app", lane)), jetstream.WithPurgeSequence(cp.Source)))
	}
}

func (h *pairCluster) putDir(dir, older, state string) {
	h.t.Helper()
	h.must(os.RemoveAll(dir))
	if state == putOlder {
		h.must(os.CopyFS(dir, os.DirFS(older)))
	}
}

// olderDatabase has the copies of the tables.
func (h *pairCluster) olderDatabase() string { return h.srv.Database + "_older" }

func (h *pairCluster) strings(q string, args ...any) (out []string) {
	h.t.Helper()
	rows, err := h.hand.Conn().Query(h.t.Context(), fmt.Sprintf(q, args...))
	h.must(err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var s string
		h.must(rows.Scan(&s))
		out = append(out, s)
	}
	h.must(rows.Err())
	return out
}

func (h *pairCluster) mergeTrees(database string) []string {
	return h.strings("SELECT name FROM system.tables WHERE database = '%s' AND engine LIKE '%%MergeTree' ORDER BY name", database)
}

// copyTables copies every table, part by part, as BACKUP would.
func (h *pairCluster) copyTables() {
	h.t.Helper()
	h.exec("CREATE DATABASE `%s`", h.olderDatabase())
	h.t.Cleanup(func() { h.execQuietly("DROP DATABASE `%s` SYNC", h.olderDatabase()) })
	for _, table := range h.mergeTrees(h.srv.Database) {
		h.exec("CREATE TABLE `%s`.`%s` AS `%s`.`%s`", h.olderDatabase(), table, h.srv.Database, table)
		h.attach(h.srv.Database, h.olderDatabase(), table)
	}
}

// attach copies the partitions of a table.
func (h *pairCluster) attach(from, to, table string) {
	h.t.Helper()
	for _, id := range h.partitions(from, table) {
		eventually(h.t, time.Minute, func() error { // an erasure's patches are not copied; a merge may have to take them first
			if err := h.hand.Conn().Exec(h.t.Context(), fmt.Sprintf("ALTER TABLE `%s`.`%s` APPLY PATCHES IN PARTITION ID '%s' SETTINGS mutations_sync = 2", from, table, id)); err != nil {
				return err
			}
			return h.hand.Conn().Exec(h.t.Context(), fmt.Sprintf("ALTER TABLE `%s`.`%s` ATTACH PARTITION ID '%s' FROM `%s`.`%s`", to, table, id, from, table))
		})
	}
}

func (h *pairCluster) partitions(database, table string) []string {
	return h.strings("SELECT DISTINCT partition_id FROM system.parts WHERE database = '%s' AND table = '%s' AND active ORDER BY partition_id", database, table)
}

// putTables puts every table back, or loses all of them.
func (h *pairCluster) putTables(state string) {
	h.t.Helper()
	if state == putLost {
		for _, table := range h.strings("SELECT name FROM system.tables WHERE database = '%s' ORDER BY engine LIKE '%%MergeTree', name", h.srv.Database) {
			h.exec("DROP TABLE IF EXISTS `%s`.`%s` SYNC", h.srv.Database, table)
		}
		return
	}
	older := h.mergeTrees(h.olderDatabase())
	for _, table := range h.mergeTrees(h.srv.Database) {
		if !slices.Contains(older, table) {
			h.exec("DROP TABLE `%s`.`%s` SYNC", h.srv.Database, table)
			continue
		}
		for _, id := range h.partitions(h.srv.Database, table) {
			h.exec("ALTER TABLE `%s`.`%s` DROP PARTITION ID '%s'", h.srv.Database, table, id)
		}
		h.attach(h.olderDatabase(), h.srv.Database, table)
	}
}

func (h *pairCluster) execQuietly(q string, args ...any) {
	_ = h.hand.Conn().Exec(h.t.Context(), fmt.Sprintf(q, args...))
}
