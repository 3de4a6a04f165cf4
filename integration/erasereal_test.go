package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
)

// parts is the parts of a topic that are read: when each was written (unix s), by
// partition and name. Patch parts are of partitions of their own.
func (e *env) parts(topic string) map[string]map[string]uint32 {
	e.t.Helper()
	var rows []struct {
		Partition string `ch:"partition_id"`
		Name      string `ch:"name"`
		At        uint32 `ch:"at"`
	}
	err := e.hand.Conn().Select(e.t.Context(), &rows, "SELECT partition_id, name, toUnixTimestamp(modification_time) AS at FROM system.parts "+
		"WHERE active AND rows > 0 AND database = ? AND table = ? AND NOT startsWith(name, 'patch-')", e.srv.Database, topic)
	if err != nil {
		e.t.Fatal(err)
	}
	out := map[string]map[string]uint32{}
	for _, r := range rows {
		if out[r.Partition] == nil {
			out[r.Partition] = map[string]uint32{}
		}
		out[r.Partition][r.Name] = r.At
	}
	return out
}

// A user stands in 2 of 20 shards: these are rewritten, and of the others every
// part is the one it was.
func TestEraseTouchesItsShardsAlone(t *testing.T) {
	t.Parallel()
	e := running(t, oneLane("app", 20))
	p := e.producer("app", wholeFrames)
	for i := range 400 {
		user := "u-1"
		if i == 65 || i == 227 || i == 230 {
			user = "u-7"
		}
		p.Log(producer.Event{Time: feb(i, 400), UserID: user, Message: fmt.Sprint(i)})
		if i%20 == 19 { // a shard
			e.flush(p)
		}
	}
	e.stored("app", 400, 30*time.Second)
	shards := e.closed("app", 30*time.Second)
	// One part each: then ClickHouse has nothing to merge by itself.
	e.exec("OPTIMIZE TABLE %s FINAL SETTINGS optimize_skip_merged_partitions = 1", e.table("app"))
	before, theirs := e.parts("app"), map[string]bool{}
	for _, s := range shards {
		if e.count("SELECT count() FROM %s WHERE shard = %d AND user_id = 'u-7'", e.table("app"), uint64(s.ID)) > 0 {
			theirs[schemas.PartitionID(s.Month, s.ID)] = true
		}
	}
	if len(before) != 20 || len(theirs) != 2 {
		t.Fatalf("%d partitions, %d with the user; want 20 and 2: %s", len(before), len(theirs), describe(shards))
	}
	if job := e.erase(erasure.Request{Topic: "app", Users: []string{"u-7"}}); job.Rows != 3 || job.Shards != 2 {
		t.Errorf("%d rows in %d shards went, want 3 in 2", job.Rows, job.Shards)
	}
	after := e.parts("app")
	for id, parts := range before {
		if maps.Equal(parts, after[id]) == theirs[id] {
			t.Errorf("partition %s has the user: %v; its parts are %v, were %v", id, theirs[id], after[id], parts)
		}
	}
	e.verify(400)
}

// A real log of logins: its lines go by user, by address, and by time, of which a
// whole shard goes as a partition. Nothing that reads brings a line of them back,
// and the lines of all others are the ones they were.
func TestEraseRealLog(t *testing.T) {
	t.Parallel()
	input := inputtest.File(t, "auth-syslog.log")
	e := running(t, oneLane("auth", 700))
	p := e.producer("auth", wholeFrames)
	r := intake.NewReader(bytes.NewReader(input), intake.Options{
		Format: intake.FormatText, TsFormat: "syslog", Year: 2019,
		UserRegex: regexp.MustCompile(`\b(?:for (?:invalid )?(?:user )?|user[= ])([a-z_0-9]+)`),
		Extract:   regexp.MustCompile(`(?:from |rhost=)(?P<ip>\d+\.\d+\.\d+\.\d+)`),
	})
	const lines = 7121
	for n := 1; ; n++ {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || rec.Err != nil {
			t.Fatalf("line %d: %v %v", rec.Line, err, rec.Err)
		}
		p.Log(rec.Event)
		if n%350 == 0 { // two frames a shard
			e.flush(p)
		}
	}
	e.flush(p)
	e.stored("auth", lines, time.Minute)
	shards := e.closed("auth", 30*time.Second)
	// The shard that will go whole: the closed one with the most lines of others.
	const few = "user_id = 'elastic_user_0' OR attributes['ip'] = '85.245.107.41'"
	var whole registry.Shard
	most := uint64(0)
	for _, s := range shards {
		if n := e.count("SELECT count() FROM %s WHERE shard = %d AND NOT (%s)", e.table("auth"), uint64(s.ID), few); s.Status == registry.Closed && n > most {
			whole, most = s, n
		}
	}
	from, to := time.Unix(0, whole.MinTs).UTC(), time.Unix(0, whole.MaxTs).UTC()
	const layout = "2006-01-02 15:04:05.999999999"
	gone := uint64(0)
	var filters []string
	for _, c := range []struct {
		req     erasure.Request
		sql     string
		filter  string // the same for those who read
		atLeast uint64
		dropped bool
	}{
		{erasure.Request{Users: []string{"elastic_user_0"}}, "user_id = 'elastic_user_0'", "user_id = 'elastic_user_0'", 100, false},
		{erasure.Request{Where: "attributes.ip = '85.245.107.41'"}, "attributes['ip'] = '85.245.107.41'", "attributes.ip = '85.245.107.41'", 300, false},
		{erasure.Request{From: from, To: to.Add(1)},
			fmt.Sprintf("ts BETWEEN toDateTime64('%s', 9, 'UTC') AND toDateTime64('%s', 9, 'UTC')", from.Format(layout), to.Format(layout)),
			fmt.Sprintf("ts >= '%s' AND ts <= '%s'", from.Format(time.RFC3339Nano), to.Format(time.RFC3339Nano)), 100, true},
	} {
		var theirs, others, left content
		ofOthers := fmt.Sprintf("SELECT "+sumSQL, "toString(id)") + e.table("auth") + " WHERE NOT (" + c.sql + ")"
		e.content(&theirs, fmt.Sprintf("SELECT "+sumSQL, "toString(id)")+e.table("auth")+" WHERE "+c.sql)
		e.content(&others, ofOthers)
		if theirs.N < c.atLeast {
			t.Fatalf("%s: %d lines match, want %d at least", c.filter, theirs.N, c.atLeast)
		}
		c.req.Topic = "auth"
		job := e.erase(c.req)
		if job.Rows != theirs.N {
			t.Errorf("%s: %d lines went, %d matched", c.filter, job.Rows, theirs.N)
		}
		gone += job.Rows
		if n := e.count("SELECT count() FROM %s WHERE %s SETTINGS apply_patch_parts = 0, apply_deleted_mask = 0", e.table("auth"), c.sql); n != 0 {
			t.Errorf("%s: %d rows are in parts that are read", c.filter, n)
		}
		if e.content(&left, ofOthers); left != others {
			t.Errorf("%s: the lines of others are %+v, were %+v", c.filter, left, others)
		}
		filters = append(filters, "("+c.filter+")")
		record, err := e.reg.ErasureRecord(t.Context(), whole.Ref())
		if err != nil || record.Receipts[job.ID].Dropped != c.dropped {
			t.Errorf("%s: %s: %+v, %v; dropped should be %v", c.filter, whole.Name(), record.Receipts[job.ID], err, c.dropped)
		}
	}
	where := strings.Join(filters, " OR ")
	if all, _ := e.answer(e.reader(), query.Request{Topic: "auth", Where: where}); len(all) != 0 {
		t.Errorf("the pages have %d", len(all))
	}
	if n := len(e.replayed(replay.Request{Topic: "auth", Where: where})); n != 0 {
		t.Errorf("replay brings %d back", n)
	}
	if n := e.tailed("auth", where); n != 0 {
		t.Errorf("the stream from its beginning has %d", n)
	}
	e.stored("auth", lines+1-gone, 30*time.Second) // tailed published a mark
	if rep := e.verify(lines + 1); rep.Erased != gone {
		t.Errorf("verify says that %d were erased, it were %d", rep.Erased, gone)
	}
	if parts := e.parts("auth")[schemas.PartitionID(whole.Month, whole.ID)]; len(parts) != 0 {
		t.Errorf("%s has parts: %v", whole.Name(), parts)
	}
	entry, err := e.reg.Shard(t.Context(), whole.Ref())
	if err != nil || entry.Rows != 0 || entry.Status != registry.Closed {
		t.Errorf("the dropped shard's entry is %+v, %v", entry, err)
	}
}
