package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// sealed waits until a topic has seals of so many shards, and returns all its seals.
func (b *box) sealed(topic string, fits func([]schemas.Seal) bool) []schemas.Seal {
	b.t.Helper()
	var all []schemas.Seal
	embeddedtest.Eventually(b.t, maxWait, func() error {
		if all = decoded[[]schemas.Seal](b, "audit", "seal", topic, "-o", "json"); !fits(all) {
			return fmt.Errorf("%d seals", len(all))
		}
		return nil
	})
	return all
}

// Closed shards are sealed through a kill. The seals hold after a rebuild; an erasure and
// fields that are cleared seal again and name the old seal; a changed row is found by its shard.
func TestSeals(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	up := b.up()
	b.ok("", "topics", "apply", "trail", "--kind", "audit", "--lanes", "1", "--rotate-rows", "50")
	send := func(from, to int) {
		var lines strings.Builder
		for i := from; i < to; i++ {
			_, _ = fmt.Fprintf(&lines, `{"ts":"2026-02-01T12:%02d:00Z","type":"request","request_id":"r-%d","scope":"s","user_id":"u-%d","message":"m","after":{"n":%d}}`+"\n", i%60, i, i%10, i)
		}
		b.ok(lines.String(), "send", "trail", "--format", "ndjson")
	}
	for i := range 4 {
		send(60*i, 60*i+60) // each a frame at least, so that each leaves a full shard
	}
	first := b.sealed("trail", func(all []schemas.Seal) bool { return len(all) >= 2 })
	up.kill()
	b.up()
	send(240, 300)
	send(300, 360)
	all := b.sealed("trail", func(all []schemas.Seal) bool { return len(all) > len(first) })
	for i := range all {
		prev := (*schemas.Seal)(nil)
		if i > 0 {
			prev = &all[i-1]
		}
		if err := all[i].Follows(prev); err != nil || all[i].Why != schemas.SealClosed || all[i].Rows == 0 {
			t.Errorf("%+v: %v", all[i], err)
		}
	}
	for i := range first {
		if all[i].Hash != first[i].Hash {
			t.Errorf("seal %d changed from %s to %s", i+1, first[i].Hash, all[i].Hash)
		}
	}
	file := b.write("seals.ndjson", b.ok("", "audit", "seal", "trail", "-o", "ndjson"))
	held := func(more ...string) (r result) {
		t.Helper()
		embeddedtest.Eventually(t, maxWait, func() error { // a shard may be between what was done and its seal, which verify says
			if r = b.run("", append([]string{"verify", "trail", "--seals", file}, more...)...); strings.Contains(r.err, "not sealed again yet") || strings.Contains(r.err, "did not answer") {
				return errors.New(r.err)
			}
			return nil
		})
		return r
	}
	good := func(when string, says ...string) {
		t.Helper()
		r := held()
		if r.code != exitOK {
			t.Errorf("%s: exit %d", when, r.code)
		}
		contains(t, r.err, append(says, "are as sealed", "proven")...)
	}
	good("at once")
	b.ok("", "rebuild", "trail", "--yes", "--drop-old")
	good("after a rebuild")

	b.ok("", "erase", "trail", "--user", "u-3", "--yes")
	// Each of those of the beginning: the shard that was open may close, and be sealed, before another.
	sealedAs := func(why string) func([]schemas.Seal) bool {
		return func(now []schemas.Seal) bool {
			last := map[schemas.ShardRef]string{}
			for _, s := range now {
				last[s.Ref()] = s.Why
			}
			return !slices.ContainsFunc(all, func(s schemas.Seal) bool { return last[s.Ref()] != why })
		}
	}
	again := b.sealed("trail", sealedAs(schemas.SealErased))
	for _, s := range again {
		if s.Why != schemas.SealErased { // the open shard may close meanwhile
			continue
		}
		if old := again[s.Replaces-1]; old.Shard != s.Shard || s.Rows != old.Rows-s.Erased || len(s.Erasures) != 1 {
			t.Errorf("%+v replaces %+v", s, old)
		}
	}
	good("after an erasure", "was replaced by number", "rows were erased, by")
	// Retention clears fields of closed shards; the open one is retired for it.
	b.ok("", "topics", "apply", "trail", "--anonymise-after", "1", "--anonymise", "message", "--yes")
	b.sealed("trail", sealedAs(schemas.SealAnonymised))
	good("after anonymising", "the fields [message] were cleared")

	file = b.write("now.ndjson", b.ok("", "audit", "seal", "trail", "-o", "ndjson"))
	changed := strings.Replace(b.ok("", "audit", "seal", "trail", "-o", "ndjson"), `"rows":`, `"rows":1`, 1)
	if r := b.run(changed, "verify", "trail", "--seals", "-"); r.code != exitFailed || !strings.Contains(r.err, "number 1 of topic trail was changed") {
		t.Errorf("a changed file: exit %d, %s", r.code, r.err)
	}
	// Someone with ClickHouse's password changes who did it.
	_, dsn := b.addresses()
	db, err := tables.Open(dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	victim := all[0]
	if err := db.Conn().Exec(ctx, fmt.Sprintf("ALTER TABLE %s UPDATE after = '{}' WHERE shard = %d AND request_id = 'r-1' SETTINGS mutations_sync = 2", sql.QuotedTable(db.Database, "trail"), uint64(victim.Shard.ID))); err != nil {
		t.Fatal(err)
	}
	r := held("-o", "json")
	var said verified
	if err := json.Unmarshal([]byte(r.out), &said); err != nil || r.code != exitFailed || len(said.Seals) != 1 || len(said.Seals[0].Problems) != 1 || !strings.Contains(said.Seals[0].Problems[0], victim.Ref().String()) {
		t.Errorf("a changed row: exit %d, %v: %s%s", r.code, err, r.out, r.err)
	}
	if r := b.run("", "verify", "trail"); r.code != exitOK {
		t.Errorf("verify alone compares ids and times: exit %d %s", r.code, r.err)
	}
	// An erasure of the same shard does not hide it: it says so, and so do its proof and the seal
	// that follows.
	r = b.run("", "erase", "trail", "--user", "u-9", "--yes")
	if r.code != exitPartial {
		t.Errorf("an erasure of a changed shard: exit %d", r.code)
	}
	contains(t, r.out+r.err, "not certified", victim.Ref().String()+" was changed before it was erased")
	now := b.sealed("trail", func(all []schemas.Seal) bool {
		return slices.ContainsFunc(all, func(s schemas.Seal) bool {
			return s.Shard == victim.Shard && s.Why == schemas.SealErased && len(s.Erasures) == 2
		})
	})
	for _, s := range now {
		if s.Unsealed != "" != (s.Shard == victim.Shard && len(s.Erasures) == 2) {
			t.Errorf("%+v", s)
		}
	}
	if r := held(); r.code != exitFailed || !strings.Contains(r.out+r.err, victim.Ref().String()+": its rows were changed between seal number") {
		t.Errorf("a changed row after an erasure: exit %d, %s%s", r.code, r.out, r.err)
	}
	if r := b.run("", "audit", "seal", "app"); r.code != exitUsage {
		t.Errorf("a log: exit %d %s", r.code, r.err)
	}
}
