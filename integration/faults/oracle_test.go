package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/schemas"
)

// Row 38: what is planted must be found, by the checker and by verify, and named.
func TestOracle(t *testing.T) {
	t.Parallel()
	h := Build(t, Plan{Writers: []Writer{{Rate: 500, Events: 8000}}, Rotate: schemas.Rotation{Rows: 1000}})
	h.StartWriters()
	await(t, 5*time.Minute, func(context.Context) error {
		if h.Said(RoleProducer, "written") == 0 || h.Said(RoleSink, "closed") < 4 {
			return fmt.Errorf("not yet written, or no shard closed")
		}
		return nil
	})
	h.Prove(5 * time.Minute)

	t.Run("a deleted row", func(t *testing.T) {
		number := h.oneRow(t, "deleted")
		h.exec(t, "DELETE FROM %s WHERE message = '%d' SETTINGS lightweight_delete_mode = 'lightweight_update_force'", Topic, number)
		v, rep := h.alarm(t)
		if len(v.Lost) != 1 || v.Lost[0] != number {
			t.Errorf("the checker says %s; want %d lost", v, number)
		}
		if rep.Missing != 1 || len(rep.Problems) == 0 {
			t.Errorf("verify says %d missing: %v", rep.Missing, rep.Problems)
		}
		h.exec(t, "INSERT INTO %s SELECT * FROM saved_deleted", Topic)
		h.clean(t)
	})
	t.Run("a doubled row", func(t *testing.T) {
		number := h.oneRow(t, "doubled")
		h.exec(t, "INSERT INTO %s SELECT * FROM saved_doubled", Topic)
		v, rep := h.alarm(t)
		if len(v.Twice) != 1 || v.Twice[0] != number {
			t.Errorf("the checker says %s; want %d twice", v, number)
		}
		if rep.Doubled != 1 || len(rep.Problems) == 0 {
			t.Errorf("verify says %d doubled: %v", rep.Doubled, rep.Problems)
		}
		h.exec(t, "DELETE FROM %s WHERE message = '%d' SETTINGS lightweight_delete_mode = 'lightweight_update_force'", Topic, number)
		h.exec(t, "INSERT INTO %s SELECT * FROM saved_doubled SETTINGS insert_deduplicate = 0", Topic)
		h.clean(t)
	})
	t.Run("a wrong registry count", func(t *testing.T) {
		key, entry := h.closedShard(t)
		kv := h.kv(t)
		if _, err := kv.Put(t.Context(), key, []byte(strings.Replace(string(entry), `"rows":`, `"rows":1`, 1))); err != nil {
			t.Fatal(err)
		}
		v, rep := h.alarm(t)
		named(t, "the checker", v.Problems, "closed with")
		named(t, "verify", rep.Problems, "closed with")
		if _, err := kv.Put(t.Context(), key, entry); err != nil {
			t.Fatal(err)
		}
		h.clean(t)
	})
	t.Run("a missing frame", func(t *testing.T) {
		js, err := jetstream.New(h.NC)
		if err != nil {
			t.Fatal(err)
		}
		s, err := js.Stream(t.Context(), "SHARDS")
		if err != nil {
			t.Fatal(err)
		}
		subject := h.middleFrame(t)
		if err := s.DeleteMsg(t.Context(), subject); err != nil {
			t.Fatal(err)
		}
		v, rep := h.alarm(t)
		named(t, "the checker", v.Problems, "positions 2 to 2 are missing in SHARDS")
		named(t, "verify", rep.Problems, "positions 2 to 2 are missing in SHARDS")
	})
}

// oneRow keeps a copy of one row in a table beside, and gives its number.
func (h *Cluster) oneRow(t *testing.T, name string) uint64 {
	t.Helper()
	h.exec(t, "CREATE TABLE saved_%s ENGINE = Memory AS SELECT * FROM %s WHERE pos > 1 ORDER BY id LIMIT 1", name, Topic)
	n, err := h.SQL.Number(t.Context(), "SELECT toUInt64(message) FROM saved_%s", name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (h *Cluster) exec(t *testing.T, format string, a ...any) {
	t.Helper()
	if err := h.SQL.Do(t.Context(), fmt.Sprintf(format, a...), func(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }); err != nil {
		t.Fatal(err)
	}
}

// alarm asks both, and fails when one of them is content.
func (h *Cluster) alarm(t *testing.T) (*Finding, *verify.Report) {
	t.Helper()
	v, rep := h.both(t)
	t.Logf("checker: %s", v)
	t.Logf("verify: missing %d, doubled %d: %s", rep.Missing, rep.Doubled, strings.Join(rep.Problems, "\n"))
	if v.OK() {
		t.Error("the checker found nothing")
	}
	if rep.OK() {
		t.Error("verify found nothing")
	}
	return v, rep
}

// both asks the checker and verify.
func (h *Cluster) both(t *testing.T) (*Finding, *verify.Report) {
	t.Helper()
	v, err := h.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rep, err := h.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v, rep
}

// clean asks both, and fails when one of them is not content.
func (h *Cluster) clean(t *testing.T) {
	t.Helper()
	if v, rep := h.both(t); !v.OK() || !rep.OK() {
		t.Fatalf("after repair by hand:\n%s\n%v", v, rep.Problems)
	}
}

func named(t *testing.T, who string, problems []string, words string) {
	t.Helper()
	for _, p := range problems {
		if strings.Contains(p, words) {
			return
		}
	}
	t.Errorf("%s does not say %q: %v", who, words, problems)
}

func (h *Cluster) kv(t *testing.T) jetstream.KeyValue {
	t.Helper()
	js, err := jetstream.New(h.NC)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "registry")
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

// closedShard is the registry's entry of one closed shard.
func (h *Cluster) closedShard(t *testing.T) (string, []byte) {
	t.Helper()
	kv := h.kv(t)
	keys, err := kv.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		e, err := kv.Get(t.Context(), key)
		var entry struct{ Status string }
		if err == nil && strings.HasPrefix(key, Topic+".") && json.Unmarshal(e.Value(), &entry) == nil && entry.Status == "closed" {
			return key, e.Value()
		}
	}
	t.Fatal("no shard is closed")
	return "", nil
}

// middleFrame is the sequence in SHARDS of a frame that is neither its shard's first nor its last.
func (h *Cluster) middleFrame(t *testing.T) uint64 {
	t.Helper()
	c := Checker{NC: h.NC}
	seqs := map[string][]uint64{}
	err := c.each(t.Context(), "SHARDS", "shards.*.*.*", true, func(m jetstream.Msg) error {
		meta, err := m.Metadata()
		if err == nil {
			seqs[m.Subject()] = append(seqs[m.Subject()], meta.Sequence.Stream)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range seqs {
		if len(of) >= 3 { // on a slow machine frames are few and large
			return of[1]
		}
	}
	t.Fatalf("no shard has three frames: %v", seqs)
	return 0
}

func await(t *testing.T, within time.Duration, ask func(context.Context) error) {
	t.Helper()
	if err := until(t.Context(), within, 50*time.Millisecond, ask); err != nil {
		t.Fatal(err)
	}
}
