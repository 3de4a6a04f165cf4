package integration

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// damage does it, with NATS stopped where its files are concerned.
func (h *damagedCluster) damage() {
	h.t.Helper()
	switch h.what {
	case "EVENTS":
		h.damageStream(schemas.StreamEvents, "events.app.")
	case "SHARDS":
		h.damageStream(schemas.StreamShards, "shards.app.")
	case bothStreams:
		h.damageStream(schemas.StreamEvents, "events.app.")
		h.damageStream(schemas.StreamShards, "shards.app.")
	case "registry":
		h.damageStream(schemas.KVStream, "$KV.registry.")
	case "checkpoint":
		h.damageCheckpoint()
	case "ClickHouse part":
		h.damagePart()
	}
}

func (h *damagedCluster) damageStream(stream, subject string) {
	h.t.Helper()
	h.stop()
	dirs, err := filepath.Glob(filepath.Join(h.dir, "jetstream", "*", "streams", stream))
	if err != nil || len(dirs) != 1 {
		h.t.Fatalf("%s is in %v: %v", stream, dirs, err)
	}
	dir := dirs[0]
	switch h.how {
	case "deleted", "older copy":
		if err := os.RemoveAll(dir); err != nil {
			h.t.Fatal(err)
		}
		if h.how == "older copy" {
			rel, _ := filepath.Rel(h.dir, dir)
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(h.older, rel))); err != nil {
				h.t.Fatal(err)
			}
		}
	default:
		h.damageBlock(dir, func(block []byte) []byte {
			third := len(block) / 3
			at := bytes.Index(block[third:], []byte(subject))
			if at < 0 {
				h.t.Fatalf("%s does not have a message after its third", stream)
			}
			return h.spoil(block, third+at)
		})
	}
	h.run()
}

// spoil damages a block in a message whose subject is at an offset.
func (h *damagedCluster) spoil(block []byte, at int) []byte {
	switch h.how {
	case "bit":
		block[at] ^= 4
	case "cut":
		block = block[:at+5]
	case "zeroed":
		clear(block[at:min(at+512, len(block))])
	}
	return block
}

// damageBlock changes a stream's largest block as a crash finds it, without the state
// file beside it.
func (h *damagedCluster) damageBlock(dir string, f func([]byte) []byte) {
	h.t.Helper()
	_ = os.Remove(filepath.Join(dir, "msgs", "index.db"))
	blocks, err := filepath.Glob(filepath.Join(dir, "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		h.t.Fatalf("no blocks in %s: %v", dir, err)
	}
	size := func(name string) int64 {
		info, err := os.Stat(name)
		if err != nil {
			h.t.Fatal(err)
		}
		return info.Size()
	}
	largest := slices.MaxFunc(blocks, func(a, b string) int { return int(size(a) - size(b)) })
	block, err := os.ReadFile(largest)
	if err == nil {
		err = os.WriteFile(largest, f(block), 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *damagedCluster) damageCheckpoint() {
	h.t.Helper()
	switch h.how {
	case "deleted":
		for subject := range h.marks {
			if err := h.shardsStream().Purge(h.t.Context(), jetstream.WithPurgeSubject(subject)); err != nil {
				h.t.Fatal(err)
			}
		}
	case "older copy":
		for _, subject := range slices.Sorted(maps.Keys(h.marks)) {
			if _, err := h.js().Publish(h.t.Context(), subject, h.marks[subject]); err != nil {
				h.t.Fatal(err)
			}
		}
	default:
		h.stop()
		dirs, err := filepath.Glob(filepath.Join(h.dir, "jetstream", "*", "streams", schemas.StreamShards))
		if err != nil || len(dirs) != 1 {
			h.t.Fatalf("%v: %v", dirs, err)
		}
		h.damageBlock(dirs[0], func(block []byte) []byte {
			at := bytes.LastIndex(block, []byte("routed.app."))
			if at < 0 {
				h.t.Fatal("no checkpoint in the largest block")
			}
			return h.spoil(block, at)
		})
		h.run()
	}
}

// damagePart damages a part of the table while the table is detached.
func (h *damagedCluster) damagePart() {
	h.t.Helper()
	table := h.table("app")
	switch h.how {
	case "deleted":
		h.exec("DROP TABLE %s SYNC", table)
		return
	case "older copy":
		for _, name := range h.partNames() {
			if !slices.Contains(h.parts, name) {
				h.exec("ALTER TABLE %s DROP PART '%s'", table, name)
			}
		}
		return
	}
	h.spoilPart(table, func(data []byte) []byte { return h.spoil(data, len(data)/2) })
}

// spoilPart damages the columns of the table's largest part while the table is detached.
func (e *env) spoilPart(table string, spoil func([]byte) []byte) {
	e.t.Helper()
	var path string
	if err := e.hand.Conn().QueryRow(e.t.Context(), fmt.Sprintf("SELECT path FROM system.parts WHERE database = '%s' AND table = 'app' AND active ORDER BY rows DESC, name LIMIT 1", e.srv.Database)).Scan(&path); err != nil {
		e.t.Fatal(err)
	}
	e.exec("DETACH TABLE %s SYNC", table)
	files, err := filepath.Glob(filepath.Join(path, "*.bin"))
	if err != nil || len(files) == 0 {
		e.t.Fatalf("no data in %s: %v", path, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil || len(data) < 64 {
			continue
		}
		mode := os.FileMode(0o600)
		if info, err := os.Stat(name); err == nil {
			mode = info.Mode()
		}
		_ = os.Remove(name) // it may be linked to another part's
		if err := os.WriteFile(name, spoil(data), mode); err != nil {
			e.t.Fatal(err)
		}
	}
	e.exec("ATTACH TABLE %s", table)
	e.exec("SYSTEM STOP MERGES %s", table)
}
