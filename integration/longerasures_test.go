package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// levels is a filter that compares with x<from> to x<to>, and as many other texts.
func levels(from, to, others int) string {
	var terms []string
	for i := from; i <= to; i++ {
		terms = append(terms, fmt.Sprintf("level='x%d'", i))
	}
	for i := range others {
		terms = append(terms, fmt.Sprintf("level='%d'", i))
	}
	return strings.Join(terms, "OR ")
}

// The filter of an erasure, and those of two together, have more values than ClickHouse takes with a statement. All
// readers leave out what they mean, it goes, a third erasure counts none of it again where it came
// back, and a sink that restores the shard leaves it out.
func TestErasuresOfManyValues(t *testing.T) {
	t.Parallel()
	e := start(t, oneLane("app", 100_000))
	e.router()
	p := e.producer("app", wholeFrames)
	const all = 60
	for i := range all {
		p.Log(producer.Event{Time: feb(i, 1000), UserID: fmt.Sprintf("u-%02d", i), Level: fmt.Sprintf("x%d", i)})
	}
	e.flush(p)
	x := e.eraser()
	var ids []string
	begin := func(req erasure.Request) string {
		t.Helper()
		req.Topic = "app"
		job, err := x.Start(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return job.ID
	}
	run := func(id string, rows uint64) {
		t.Helper()
		if job, err := x.Run(t.Context(), "app", id); err != nil || job.Rows != rows {
			t.Fatalf("%d rows went, want %d (%v)", job.Rows, rows, err)
		}
	}
	ids = append(ids, begin(erasure.Request{Where: levels(0, 19, 1050)}), begin(erasure.Request{Where: levels(10, 29, 10)}))
	if n := e.found("app", ""); n != 30 {
		t.Errorf("a page has %d events, want 30", n)
	}
	if n := e.tailed("app", "user_id != ''"); n != 30 {
		t.Errorf("the stream has %d events, want 30", n)
	}
	stop := e.sink()
	e.stored("app", all+1, 30*time.Second)
	if lines := e.replayed(replay.Request{Topic: "app"}); len(lines) != 31 {
		t.Errorf("a replay has %d events, want 31", len(lines))
	}
	shard := e.shards("app")[0]
	exec := func(format string, args ...any) {
		t.Helper()
		if err := e.hand.Conn().Exec(t.Context(), fmt.Sprintf(format, args...)); err != nil {
			t.Fatal(err)
		}
	}
	older := sql.QuoteName(e.srv.Database) + ".Older"
	exec("CREATE TABLE %s AS %s", older, e.table("app"))
	exec("INSERT INTO %s SELECT * FROM %s", older, e.table("app"))
	run(ids[0], 20)
	run(ids[1], 10)
	e.verify(all + 1)

	exec("ALTER TABLE %s REPLACE PARTITION ID '%s' FROM %s", e.table("app"), schemas.PartitionID(shard.Month, shard.ID), older)
	var users []string
	for i := 5; i <= 35; i++ {
		users = append(users, fmt.Sprintf("u-%02d", i))
	}
	ids = append(ids, begin(erasure.Request{Users: users}))
	run(ids[2], 6)
	run(ids[0], 20)
	run(ids[1], 10)
	e.verify(all + 1)

	stop()
	exec("ALTER TABLE %s DROP PARTITION ID '%s'", e.table("app"), schemas.PartitionID(shard.Month, shard.ID))
	e.sink()
	e.stored("app", all+1-36, 30*time.Second)
	e.verify(all + 1)
}
