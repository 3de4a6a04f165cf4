package integration

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// full is what verify reports when it takes nothing from earlier proofs.
func (e *env) full() (*verify.Report, error) {
	e.t.Helper()
	v, err := verify.New(e.connect(), e.reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	return answered(func() (*verify.Report, error) { return v.Full().Run(e.t.Context(), "") })
}

// provenShards stores 40 events in closed shards and an active one, stops what runs, and
// has all of it proven.
func provenShards(t *testing.T) (*env, registry.Shard) {
	t.Helper()
	topic := oneLaneTopic()
	topic.Rotate = schemas.Rotation{Rows: 12}
	e := start(t, topic)
	stopRouter, stopSink := e.router(), e.sink()
	p := e.producer("app")
	for i := range 40 {
		if err := p.Publish(t.Context(), producer.Event{Message: fmt.Sprint(i), UserID: "u"}); err != nil {
			t.Fatal(err)
		}
	}
	e.stored("app", 40, 30*time.Second)
	one := e.closed("app", 30*time.Second)[0]
	stopRouter()
	stopSink()
	e.exec("SYSTEM STOP MERGES %s", e.table("app"))
	eventually(t, time.Minute, func() error { // a merge may have ended meanwhile
		rep, err := e.proof("")
		if err == nil && (!rep.OK() || rep.Taken.Rows != 40 || rep.Taken.Frames != 40) {
			err = fmt.Errorf("OK %v, taken from the proof: %+v; want 40 rows and 40 frames", rep.OK(), rep.Taken)
		}
		return err
	})
	return e, one
}

// What did not change is taken from the proof; what came since is examined, and Full
// examines all.
func TestVerifyTakesProofs(t *testing.T) {
	t.Parallel()
	e, _ := provenShards(t)
	rep, err := e.full()
	if err != nil || !rep.OK() || rep.Stored != 40 || rep.Taken != (verify.Taken{}) {
		t.Errorf("full: %v, %+v", err, rep)
	}
	v, err := verify.New(e.connect(), e.reg, e.db)
	if err != nil {
		t.Fatal(err)
	}
	var told [][2]int
	rep, err = answered(func() (*verify.Report, error) {
		told = nil
		return v.Telling(func(shards, of int) { told = append(told, [2]int{shards, of}) }).Run(t.Context(), "")
	})
	if err != nil || len(told) < 3 { // 40 events are more than one shard
		t.Fatalf("a run of several shards tells %v: %v, %+v", told, err, rep)
	}
	for i, got := range told {
		if want := [2]int{i, len(told) - 1}; got != want {
			t.Errorf("it tells %v, want %v in place %d", told, want, i)
		}
	}
	before, err := e.proof("")
	if err != nil {
		t.Fatal(err)
	}
	e.router()
	e.sink()
	e.say(e.producer("app"), 5)
	e.stored("app", 45, 30*time.Second)
	rep = e.verify(45)
	if rep.Taken.Rows == 0 || rep.Taken.Rows > 40 || rep.Taken.Frames < 40 {
		t.Errorf("with 5 events more, %+v is taken from the proof; want closed shards' rows and 40 frames", rep.Taken)
	}
	if !rep.Taken.Since.Equal(before.Taken.Since) {
		t.Errorf("the proof is of %s, want %s", rep.Taken.Since, before.Taken.Since)
	}
}

// A proof hides nothing: whatever is damaged after it, verify names what Full names.
func TestProofHidesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(e *env, s registry.Shard){
		"rows removed": func(e *env, s registry.Shard) {
			e.exec("DELETE FROM %s WHERE shard = %d AND message = '5'"+force, e.table("app"), uint64(s.ID))
		},
		"rows removed by a mutation": func(e *env, s registry.Shard) {
			e.exec("SYSTEM START MERGES %s", e.table("app"))
			e.exec("ALTER TABLE %s DELETE WHERE shard = %d AND message = '5' SETTINGS mutations_sync = 2", e.table("app"), uint64(s.ID))
		},
		"a partition detached": func(e *env, s registry.Shard) {
			e.exec("ALTER TABLE %s DETACH PARTITION ID '%s'", e.table("app"), schemas.PartitionID(s.Month, s.ID))
		},
		"an older copy of a part": func(e *env, s registry.Shard) {
			id, table := schemas.PartitionID(s.Month, s.ID), e.table("app")
			older := sql.QuotedTable(e.srv.Database, "older_copy")
			e.exec("CREATE TABLE %s AS %s", older, table)
			e.exec("INSERT INTO %s SELECT * FROM %s WHERE shard = %d AND toUInt64(message) < 6", older, table, uint64(s.ID))
			e.exec("ALTER TABLE %s REPLACE PARTITION ID '%s' FROM %s", table, id, older)
			e.exec("DROP TABLE %s SYNC", older)
		},
		"an id changed": func(e *env, s registry.Shard) {
			e.replaceRow("app", fmt.Sprintf("shard = %d AND message = '5'", uint64(s.ID)), "toUUID('00000000-0000-7000-8000-000000000001') AS id")
		},
		"a time changed": func(e *env, s registry.Shard) {
			e.replaceRow("app", fmt.Sprintf("shard = %d AND message = '5'", uint64(s.ID)), "ts + 1 AS ts, toUUID('00000000-0000-7000-8000-000000000001') AS id")
		},
		"a row doubled": func(e *env, s registry.Shard) {
			e.exec("INSERT INTO %s SELECT * FROM %[1]s WHERE shard = %d AND message = '5'"+noMerge, e.table("app"), uint64(s.ID))
		},
		"frames cut in the middle": func(e *env, s registry.Shard) {
			e.cutFrames(s, func(all []uint64) []uint64 { return all[3:6] })
		},
		"the last frame cut": func(e *env, s registry.Shard) {
			e.cutFrames(s, func(all []uint64) []uint64 { return all[len(all)-1:] })
		},
		"all frames cut": func(e *env, s registry.Shard) {
			e.cutFrames(s, func(all []uint64) []uint64 { return all })
		},
		"the stream's end cut": func(e *env, _ registry.Shard) {
			all := e.messages(schemas.StreamShards, ">")
			for _, m := range all[len(all)/2:] {
				if err := e.shardsStream().DeleteMsg(e.t.Context(), m.Sequence); err != nil {
					e.t.Fatal(err)
				}
			}
		},
		"the entry's rows changed": func(e *env, s registry.Shard) {
			if _, err := e.reg.Correct(e.t.Context(), s.Ref(), func(s *registry.Shard) bool { s.Rows++; return true }); err != nil {
				e.t.Fatal(err)
			}
		},
		"the entry's range narrowed": func(e *env, s registry.Shard) {
			if _, err := e.reg.Correct(e.t.Context(), s.Ref(), func(s *registry.Shard) bool { s.MinTs = s.MaxTs; return true }); err != nil {
				e.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, one := provenShards(t)
			c(e, one)
			for run := range 2 { // a run with problems proves nothing for the next
				rep, err := e.proof("")
				if err != nil {
					t.Fatal(err)
				}
				full, err := e.full()
				if err != nil {
					t.Fatal(err)
				}
				if full.OK() {
					t.Fatal("it is not damage")
				}
				if a, b := problems(rep), problems(full); !slices.Equal(a, b) || rep.Totals != full.Totals {
					t.Errorf("run %d from the proof: %+v\n%s\nfull: %+v\n%s", run+1, rep.Totals, strings.Join(a, "\n"), full.Totals, strings.Join(b, "\n"))
				}
			}
		})
	}
}

// problems are a report's, in order.
func problems(rep *verify.Report) []string { return slices.Sorted(slices.Values(rep.Problems)) }

// cutFrames deletes frames of a shard from SHARDS.
func (e *env) cutFrames(s registry.Shard, which func([]uint64) []uint64) {
	e.t.Helper()
	var all []uint64
	for _, m := range e.messages(schemas.StreamShards, s.Ref().Subject()) {
		all = append(all, m.Sequence)
	}
	for _, seq := range which(all) {
		if err := e.shardsStream().DeleteMsg(context.WithoutCancel(e.t.Context()), seq); err != nil {
			e.t.Fatal(err)
		}
	}
}

// Full has every column's bytes compared with their checksums: what went bad in one that
// verify does not read is named with what to do.
func TestFullReadsEveryColumn(t *testing.T) {
	t.Parallel()
	e, _ := provenShards(t)
	e.spoilPart(e.table("app"), func(data []byte) []byte {
		data[len(data)/2] ^= 4
		return data
	})
	if rep, err := e.full(); err == nil && (rep.OK() || !strings.Contains(strings.Join(rep.Problems, "\n"), "DETACH PART")) {
		t.Errorf("a part's bytes are damaged, and full says %v", rep.Problems)
	} else if err != nil && !strings.Contains(err.Error(), "DETACH PART") {
		t.Error(err)
	}
}

// provenFramesEnv is how many frames TestVerifyManyFrames stores; make faults sets
// 260,000 and prints what verify takes before there is a proof and after.
const provenFramesEnv = "ALMANAC_PROVEN_FRAMES"

// Verify of many small frames reads their headers once.
func TestVerifyManyFrames(t *testing.T) {
	t.Parallel()
	n := uint64(2000)
	if text := os.Getenv(provenFramesEnv); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	e := start(t, oneLaneTopic())
	e.router()
	e.sink()
	p := e.producer("app", func(c *producer.Config) { c.Linger = -1 })
	var wg sync.WaitGroup
	for w := range uint64(32) {
		wg.Go(func() {
			for i := w; i < n; i += 32 {
				if err := p.Publish(t.Context(), producer.Event{Message: "x", UserID: "u"}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	e.stored("app", n, 10*time.Minute)
	measure := func(what string, run func() (*verify.Report, error)) *verify.Report {
		t.Helper()
		began := time.Now()
		rep, err := run()
		if err != nil || !rep.OK() || rep.Stored != n {
			t.Fatalf("%s: %v, %+v", what, err, rep)
		}
		t.Logf("%s: %s for %d events, %d frames taken from the proof", what, time.Since(began).Round(time.Millisecond), n, rep.Taken.Frames)
		return rep
	}
	measure("full", e.full)
	rep := measure("from the proof", func() (*verify.Report, error) { return e.proof("") })
	if frames := uint64(len(e.headersOf(schemas.ShardsFilter("app")))); rep.Taken.Frames != frames {
		t.Errorf("%d of %d frames are taken from the proof", rep.Taken.Frames, frames)
	}
	e.say(p, 1)
	e.stored("app", n+1, time.Minute)
	n++
	measure("from the proof, with an event more", func() (*verify.Report, error) { return e.proof("") })
}

// headersOf are the messages of SHARDS under a filter, without their data.
func (e *env) headersOf(filter string) (all []uint64) {
	e.t.Helper()
	if _, err := streams.Headers(e.t.Context(), e.reg.JetStream(), schemas.StreamShards, filter, 1, func(m *streams.Message) error {
		all = append(all, m.Sequence)
		return nil
	}); err != nil {
		e.t.Fatal(err)
	}
	return all
}
