package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/sinks"
)

// faultyWritesEnv set to "all" runs every writer with every fault; make faults does.
const faultyWritesEnv = "ALMANAC_FAULTY_WRITES"

// linkFault is what becomes of the messages of one writer's link. The functions
// count requests, answers and deliveries from 0. Each fault ends by itself.
type linkFault struct {
	name string
	// representative is run each time, with a few writers.
	representative              bool
	request, answer, deliveries func(n int) embeddedtest.Fate
}

func whole(int) embeddedtest.Fate { return embeddedtest.Fate{} }

// losing loses n messages from the one at first on, each every-th.
func losing(first, n, every int) func(int) embeddedtest.Fate {
	return func(i int) embeddedtest.Fate {
		return embeddedtest.Fate{Drop: i >= first && i < first+n && i%every == 0}
	}
}

// late delays every tenth message while there are fewer than 80.
func late(i int) embeddedtest.Fate {
	if i%10 == 3 && i < 80 {
		return embeddedtest.Fate{Delay: 1200 * time.Millisecond}
	}
	return embeddedtest.Fate{}
}

func linkFaults() []linkFault {
	out := []linkFault{
		{"answers are a second late", true, whole, late, late},
		{"requests are a second late", false, late, whole, whole},
		{"one answer in seven is lost", false, whole, losing(0, 150, 7), losing(0, 150, 7)},
		{"one request in seven is lost", true, losing(0, 150, 7), whole, whole},
		{"one message in five is lost", true, whole, whole, losing(0, 200, 5)},
		{"each third of all is lost", false, losing(0, 40, 3), losing(0, 40, 3), losing(0, 40, 3)},
	}
	for _, n := range []int{0, 1, 2, 3, 5, 8, 12, 17, 23, 30, 45, 70, 110} {
		out = append(out,
			linkFault{fmt.Sprintf("answer %d is lost", n), n == 12, whole, losing(n, 1, 1), whole},
			linkFault{fmt.Sprintf("request %d is lost", n), n == 17, losing(n, 1, 1), whole, whole})
	}
	for _, n := range []int{2, 7, 15, 30, 60} {
		out = append(out,
			linkFault{fmt.Sprintf("answers %d to %d are lost", n, n+5), n == 15, whole, losing(n, 6, 1), whole},
			linkFault{fmt.Sprintf("requests %d to %d are lost", n, n+5), n == 30, losing(n, 6, 1), whole, whole})
	}
	for _, n := range []int{0, 3, 20, 60} {
		out = append(out, linkFault{fmt.Sprintf("messages %d to %d are lost", n, n+19), n == 3, whole, whole, losing(n, 20, 1)})
	}
	return out
}

// faulty is a link to the servers with a fault.
func (e *env) faulty(f linkFault) string {
	requests, answers, deliveries := 0, 0, 0
	return embeddedtest.LinkProxy(e.t, e.srv.NATSURL,
		func(embeddedtest.Request) embeddedtest.Fate {
			requests++
			return f.request(requests - 1)
		},
		func(a embeddedtest.Answer) embeddedtest.Fate {
			if strings.HasPrefix(a.Reply, "$JS.ACK.") || bytes.Contains(a.Header, []byte("\r\nNats-Stream: ")) {
				deliveries++
				return f.deliveries(deliveries - 1)
			}
			answers++
			return f.answer(answers - 1)
		})
}

// untilDone calls f until it succeeds, as a process that is started again does. Each
// error must be one of a link, which says what to do.
func untilDone[T any](e *env, what string, f func(context.Context) (T, error)) T {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), maxWait*time.Minute)
	defer cancel()
	for {
		v, err := f(ctx)
		if err == nil {
			return v
		}
		e.logf("%s: %v", what, err)
		if !strings.Contains(err.Error(), "again") {
			e.t.Errorf("%s ended with %q, which does not say what to do next", what, err)
		}
		if ctx.Err() != nil {
			e.t.Fatalf("%s does not succeed: %v", what, err)
		}
	}
}

func (e *env) registryOver(nc *nats.Conn) *registry.Registry {
	e.t.Helper()
	return untilDone(e, "opening the registry", func(ctx context.Context) (*registry.Registry, error) { return registry.Open(ctx, nc) })
}

func (e *env) readerOver(nc *nats.Conn, reg *registry.Registry) *query.Reader {
	e.t.Helper()
	return untilDone(e, "a reader", func(context.Context) (*query.Reader, error) { return query.New(nc, reg, e.db) })
}

// writers are the parts and verbs that write, each over a faulty link. Each ends with
// everything checked.
var writers = []struct {
	name   string
	topics []schemas.Topic
	run    func(e *env, link string)
}{
	{"router", []schemas.Topic{replayTopic(2)}, func(e *env, link string) {
		e.sink()
		nc := e.connectTo(link)
		cfg := router.Config{Registry: e.registryOver(nc), Discover: 200 * time.Millisecond, Hooks: router.Hooks{
			Fault: func(topic, lane string, err error) { e.logf("router %s/%s: %v", topic, lane, err) },
		}}
		r := untilDone(e, "a router", func(ctx context.Context) (*router.Router, error) { return router.New(ctx, nc, cfg) })
		e.background(r.Run)
		n := uint64(0)
		for _, mark := range []string{"a", "b"} {
			e.both(40, 20, mark)
			e.publish(schemas.EventsSubject("app", schemas.MonthOf(time.Now().UnixNano()), 0), "{no json")
			n += 60
			e.stored("app", n, time.Minute)
		}
		e.resolved()
		e.verify(n + 2)
		e.whole("app", n)
	}},
	{"sink", []schemas.Topic{replayTopic(2)}, func(e *env, link string) {
		e.router()
		nc := e.connectTo(link)
		e.sinkOver(nc, func(c *sinkConfig) { c.Linger = 5 * time.Millisecond })
		n := uint64(0)
		for _, mark := range []string{"a", "b"} {
			e.both(40, 20, mark)
			n += 60
			e.stored("app", n, time.Minute)
		}
		e.resolved()
		e.verify(n)
		e.whole("app", n)
	}},
	{"janitor", []schemas.Topic{oneLaneTopic()}, func(e *env, link string) {
		stopRouter, stopSink := e.router(), e.sink(func(c *sinkConfig) { c.Housekeeping = time.Hour })
		const n = 50
		p := e.producer("app")
		for i := range n {
			p.Log(producer.Event{Time: time.Now().AddDate(-1, 0, 0), UserID: fmt.Sprint(i)})
		}
		e.flush(p)
		e.both(10, 0, "stays")
		e.stored("app", n+10, time.Minute)
		stopSink()
		stopRouter()
		topic := oneLaneTopic()
		topic.KeepDays = 30
		e.apply(topic)
		e.router()
		e.sinkOver(e.connectTo(link), func(c *sinkConfig) {
			c.Retention.Now = func() time.Time { return time.Now().Add(25 * time.Hour) } // a shard is left alone on its first day
		})
		eventually(e.t, time.Minute, func() error {
			for _, s := range e.shards("app") {
				if old := s.Month != schemas.MonthOf(time.Now().UnixNano()); old != (s.Status == registry.Dropped) {
					return fmt.Errorf("not as it should be: %s", describe(e.shards("app")))
				}
			}
			return nil
		})
		e.both(10, 0, "goes on")
		e.stored("app", 20, time.Minute)
		if rep := e.verify(n + 20); rep.Dropped != n || rep.Stored != 20 {
			e.t.Errorf("the report: %+v", rep.Totals)
		}
	}},
	{"erase", []schemas.Topic{replayTopic(2)}, func(e *env, link string) {
		e.router()
		e.sink()
		e.fill("app", 500, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)) // ten events of each user
		e.stored("app", 500, time.Minute)
		nc := e.connectTo(link)
		reg := e.registryOver(nc)
		cfg := erasure.Config{Registry: reg, Reader: e.readerOver(nc, reg), DB: e.db, Within: maxWait * time.Minute}
		x := untilDone(e, "an eraser", func(ctx context.Context) (*erasure.Eraser, error) { return erasure.New(ctx, cfg) })
		job := untilDone(e, "entering an erasure", func(ctx context.Context) (ledger.Erasure, error) {
			return x.Start(ctx, erasure.Request{Topic: "app", Users: []string{"u-7", "u-8"}})
		})
		job = untilDone(e, "an erasure", func(ctx context.Context) (ledger.Erasure, error) { return x.Run(ctx, "app", job.ID) })
		if job.State != ledger.Erased {
			e.t.Errorf("the erasure ended as %s", job.State)
		}
		if left := e.found("app", "user_id in ('u-7', 'u-8')"); left != 0 {
			e.t.Errorf("%d of its events are left", left)
		}
		if got := e.count("SELECT uniqExact(id) FROM %s SETTINGS apply_patch_parts = 0", e.table("app")); got != 480 {
			e.t.Errorf("%d events are left, want 480", got)
		}
		untilDone(e, "purging", func(ctx context.Context) (struct{}, error) {
			_, err := x.Purge(ctx, "app", job.ID)
			return struct{}{}, err
		})
		e.resolved()
		e.verify(500)
	}},
	{"replay into a topic", []schemas.Topic{replayTopic(2), copyTopic()}, func(e *env, link string) {
		e.router()
		e.sink()
		const n = 500
		e.fill("app", n, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
		e.stored("app", n, time.Minute)
		rep := e.replayerOver(e.connectTo(link))
		untilDone(e, "a replay", func(ctx context.Context) (replay.Result, error) {
			j, err := rep.Begin(ctx, replay.Request{Topic: "app", Into: "copy"})
			if err != nil {
				return replay.Result{}, err
			}
			return j.Run(ctx, nil, replay.Pace{})
		})
		e.stored("copy", n, time.Minute)
		if got := e.count("SELECT uniqExact(id) FROM %s", e.table("copy")); got != n {
			e.t.Errorf("%d ids, want %d", got, n)
		}
		e.resolved()
		rpt, err := e.proof("copy")
		if err != nil || !rpt.OK() {
			e.t.Errorf("%+v, %v", rpt, err)
		}
		e.whole("copy", n)
	}},
	{"replay by position", []schemas.Topic{replayTopic(2)}, func(e *env, link string) {
		e.router()
		e.sink()
		const n = 500
		e.fill("app", n, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
		e.stored("app", n, time.Minute)
		want := e.replayed(replay.Request{Topic: "app"})
		rep, out, id := e.replayerOver(e.connectTo(link)), bytes.Buffer{}, ""
		untilDone(e, "a replay", func(ctx context.Context) (replay.Result, error) {
			j, err := rep.Begin(ctx, replay.Request{Topic: "app"})
			if id != "" {
				j, err = rep.Resume(ctx, id)
			}
			switch {
			case errors.Is(err, replay.ErrDone): // the answer to its last word was lost
				return replay.Result{}, nil
			case errors.Is(err, schemas.ErrRequest): // it was never entered
				id = ""
				return replay.Result{}, fmt.Errorf("it begins again: %w", err)
			case err != nil:
				return replay.Result{}, err
			}
			id = j.ID()
			return j.Run(ctx, &out, replay.Pace{})
		})
		got := strings.SplitAfter(out.String(), "\n")
		got = got[:len(got)-1]
		slices.Sort(got)
		slices.Sort(want)
		if got = slices.Compact(got); !slices.Equal(got, want) { // what was written since the cursor may come again
			e.t.Errorf("%d lines, want %d", len(got), len(want))
		}
	}},
	{"producer with a spool", []schemas.Topic{replayTopic(2)}, func(e *env, link string) {
		e.router()
		e.sink()
		nc, dir := e.connectTo(link), e.t.TempDir()
		cfg := producer.Config{
			Topic: "app", Policy: producer.Spool, SpoolDir: dir, AckTimeout: 200 * time.Millisecond, Linger: -1, Stderr: io.Discard,
			Hooks: producer.Hooks{},
		}
		p := untilDone(e, "a producer", func(ctx context.Context) (*producer.Producer, error) { return producer.New(ctx, nc, cfg) })
		const n = 300
		for i := range n {
			p.Log(producer.Event{UserID: fmt.Sprint(i)})
			if i%3 == 2 {
				short, cancel := context.WithTimeout(e.t.Context(), 20*time.Millisecond)
				_ = p.Flush(short)
				cancel()
			}
		}
		short, cancel := context.WithTimeout(e.t.Context(), 2*time.Second) // what is left stays on disk
		defer cancel()
		_ = p.Close(short)
		again, err := producer.New(e.t.Context(), e.connect(), cfg)
		if err != nil {
			e.t.Fatal(err)
		}
		e.flush(again)
		e.stored("app", n, time.Minute)
		e.resolved()
		e.whole("app", n)
	}},
}

func copyTopic() schemas.Topic {
	t := replayTopic(2)
	t.Name = "copy"
	return t
}

func (e *env) sinkOver(nc *nats.Conn, change func(*sinkConfig)) {
	e.t.Helper()
	cfg := sinkConfig{Config: sinks.Config{Registry: e.registryOver(nc), DB: e.sinkDB, Linger: 50 * time.Millisecond, Housekeeping: housekeeping, Hooks: sinks.Hooks{
		Fault: func(ref schemas.ShardRef, err error) { e.logf("sink %s: %v", ref, err) },
	}}}
	change(&cfg)
	e.background(untilDone(e, "a sink", func(ctx context.Context) (func(context.Context) error, error) { return withJanitor(ctx, nc, cfg) }))
}

func (e *env) replayerOver(nc *nats.Conn) *replay.Replayer {
	e.t.Helper()
	reg := e.registryOver(nc)
	cfg := replay.Config{NATS: nc, Registry: reg, DB: e.db, Reader: e.readerOver(nc, reg)}
	return untilDone(e, "a replayer", func(ctx context.Context) (*replay.Replayer, error) { return replay.New(ctx, cfg) })
}

// TestWritersBehindFaultyLinks runs every part and verb that writes where NATS gets
// requests and gives answers late, not wholly or not at all for a while. Nothing is
// lost, nothing is there twice, and each comes to its end.
func TestWritersBehindFaultyLinks(t *testing.T) {
	t.Parallel()
	all := os.Getenv(faultyWritesEnv) == "all"
	var ran atomic.Int64
	t.Run("writers", func(t *testing.T) {
		for i, w := range writers {
			for j, f := range linkFaults() {
				if !all && (!f.representative || (i+j)%8 != 0) {
					continue
				}
				t.Run(w.name+"/"+f.name, func(t *testing.T) {
					t.Parallel()
					e := start(t, w.topics...)
					w.run(e, e.faulty(f))
					ran.Add(1)
				})
			}
		}
	})
	if ran.Load() < 6 {
		t.Errorf("%d cells ran, want 6 or more", ran.Load())
	}
}
