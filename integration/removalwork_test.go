package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/maintenance/billing"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/internal/maintenance/removal"
	"github.com/almanac-events/almanac/internal/maintenance/retention"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// frozenWork is work on a topic that stands still at a point, as a process does that is stopped.
type frozenWork struct {
	point string
	wake  chan struct{}
	ended chan error
}

// freeze begins work, and returns once it stands at a point. The work calls at with each point that it comes to.
func (e *env) freeze(point string, work func(at func(point string)) error) *frozenWork {
	e.t.Helper()
	f := &frozenWork{point: point, wake: make(chan struct{}), ended: make(chan error, 1)}
	stands, once := make(chan struct{}), sync.Once{}
	go func() {
		f.ended <- work(func(p string) {
			if p == point {
				once.Do(func() { close(stands); <-f.wake })
			}
		})
	}()
	select {
	case <-stands:
	case err := <-f.ended:
		e.t.Fatalf("%s: it ended before it stood there: %v", f.point, err)
	case <-time.After(maxWait * time.Minute):
		e.t.Fatalf("%s: it does not come there", f.point)
	}
	return f
}

// removalsEnv has TestRemovalOfTopicsAtWork try all work at all its points, in place of one by chance.
const removalsEnv = "ALMANAC_REMOVALS"

// chore is work on topics, with the points at which it may stand still.
type chore struct {
	points []string
	topics func(i int) []schemas.Topic        // for its point i
	work   func(i int, at func(string)) error // of point i
	shared bool                               // all points are of the same topics
}

// TestRemovalOfTopicsAtWork removes topics on which erasures, rebuilds, replays, retention, and closes of months stand still between any two of their steps,
// and declares them again with other settings. What goes on then ends, says that the topic is gone, and takes or leaves nothing of the new topic.
func TestRemovalOfTopicsAtWork(t *testing.T) {
	t.Parallel()
	e := start(t)
	ctx := t.Context()
	named := func(names ...string) func(int) []schemas.Topic {
		return func(i int) (topics []schemas.Topic) {
			for _, name := range names {
				topics = append(topics, newTopic(fmt.Sprint(name, i)))
			}
			return topics
		}
	}
	all := []chore{{
		points: []string{"erase.entered", "erase.settled", "erase.before-intent", "erase.after-delete", "erase.before-book", "erase.swept", "erase.summed", "erase.noted"},
		topics: named("erased"),
		work: func(i int, at func(string)) error {
			x, name := e.eraser(func(c *erasure.Config) { c.Crash = at }), fmt.Sprint("erased", i)
			job, err := x.Start(ctx, erasure.Request{Topic: name, Users: []string{"u-1"}})
			if err == nil {
				_, err = x.Run(ctx, name, job.ID)
			}
			return err
		},
	}, {
		points: []string{"rebuild.after-create", "rebuild.after-batch", "rebuild.after-freeze", "rebuild.before-swap", "rebuild.after-swap"},
		topics: named("rebuilt"),
		work: func(i int, at func(string)) error {
			nc := e.connect()
			_, err := rebuild.Run(ctx, rebuild.Config{NATS: nc, Registry: e.registry(nc), DB: e.db, Crash: func(p string) error { at(p); return nil }}, fmt.Sprint("rebuilt", i), true)
			return err
		},
	}, {
		points: []string{"billing.read", "billing.begun", "billing.positions", "billing.some", "billing.all"},
		topics: func(i int) []schemas.Topic {
			return []schemas.Topic{meterTopic(t, fmt.Sprint("usage", i)), newTopic(fmt.Sprint("bills", i))}
		},
		work: func(i int, at func(string)) error {
			_, err := e.closerAt("", at).Close(ctx, billing.Request{Topic: fmt.Sprint("usage", i), Month: 202602, Into: fmt.Sprint("bills", i)})
			return err
		},
	}, {
		points: []string{"replay.begun"},
		topics: named("from", "into"),
		work: func(_ int, at func(string)) error {
			j, err := e.replayer(nil).Begin(ctx, replay.Request{Topic: "from0", Into: "into0"})
			if err == nil {
				at("replay.begun")
				_, err = j.Run(ctx, nil, replay.Pace{})
			}
			return err
		},
	}, {
		points: []string{"janitor.before-clear", "janitor.after-clear", "janitor.before-mark-frames", "janitor.before-anonymised", "janitor.derived", "janitor.before-mark", "janitor.after-mark", "janitor.after-expiry", "janitor.before-drop", "janitor.after-drop"},
		topics: func(int) []schemas.Topic {
			anonymised, kept := newTopic("anonymised"), newTopic("kept")
			anonymised.Anonymise, kept.KeepDays = schemas.Anonymise{AfterDays: 9999, Fields: []string{"user_id"}}, 9999
			return []schemas.Topic{anonymised, kept}
		},
		work: func(_ int, at func(string)) error {
			nc := e.connect()
			j, err := retention.New(ctx, nc, retention.Config{Registry: e.registry(nc), DB: e.sinkDB, Now: func() time.Time { return time.Now().Add(9999 * 24 * time.Hour) }, Crash: at})
			for until := time.Now().Add(maxWait * time.Minute); err == nil && ctx.Err() == nil && time.Now().Before(until); _ = backoff.Sleep(ctx, 50*time.Millisecond) {
				if err = j.Round(ctx); ctx.Err() == nil && (errors.Is(err, streams.ErrCut) || errors.Is(err, tables.ErrUnreachable)) {
					err = nil // a server that is busy; a shard is retired, sealed and closed first
				}
			}
			return err
		},
		shared: true,
	}}
	if os.Getenv(removalsEnv) == "" {
		seed := uint64(time.Now().UnixNano())
		rng := rand.New(rand.NewPCG(seed, 0))
		b := all[rng.IntN(len(all))]
		n := rng.IntN(len(b.points))
		t.Logf("seed %d: %s", seed, b.points[n])
		b.points = b.points[n : n+1]
		all = []chore{b}
	}
	var topics []schemas.Topic
	for _, b := range all {
		for i := range b.points {
			if i == 0 || !b.shared {
				topics = append(topics, b.topics(i)...)
			}
		}
	}
	for i := range topics {
		e.apply(topics[i])
	}
	e.router()
	e.sink()
	e.rollups()
	for i := range topics {
		if topics[i].Kind == kinds.Meter {
			e.diffs(topics[i].Name, february(3, 1, "c-1", 100), february(4, 2, "c-2", 100))
			continue
		}
		p := e.producer(topics[i].Name)
		for k := range 20 {
			p.Log(producer.Event{Time: feb(k, 20), UserID: fmt.Sprint("u-", k%2), Message: fmt.Sprint(k)})
		}
		e.flush(p)
	}
	for i := range topics {
		e.finalUsage(topics[i].Name)
	}
	var work []*frozenWork
	for _, b := range all {
		for i, point := range b.points {
			work = append(work, e.freeze(point, func(at func(string)) error { return b.work(i, at) }))
		}
	}
	var removing sync.WaitGroup
	for i := range topics {
		removing.Go(func() {
			if d, err := removal.Run(ctx, e.removals(nil), topics[i].Name); err != nil || d.Ended == nil {
				t.Errorf("removing %s: %+v, %v", topics[i].Name, d, err)
			}
		})
	}
	removing.Wait()
	for i := range topics {
		topic := schemas.NewTopicOf(topics[i].Kind, topics[i].Name)
		topic.Lanes, topic.Fields = 1, append(topic.Fields, schemas.Field{Name: "more", Type: schemas.TypeString})
		e.apply(topic)
		e.some(&topic, 0, 5)
	}
	for i := range topics {
		e.stored(topics[i].Name, 5, time.Minute)
	}
	for _, f := range work {
		close(f.wake)
	}
	for _, f := range work {
		if err := <-f.ended; !errors.Is(err, schemas.ErrUnknownTopic) && (err == nil || !strings.Contains(err.Error(), "was removed")) {
			t.Errorf("%s: %v", f.point, err)
		}
	}
	for i := range topics {
		e.whole(topics[i].Name, 5)
		e.some(&topics[i], 5, 6)
	}
	for i := range topics {
		e.stored(topics[i].Name, 6, time.Minute)
		e.verified(topics[i].Name)
	}
	for _, verb := range []string{"usage-close", "replay-into"} {
		if jobs, err := e.reg.Jobs(ctx, verb); err != nil || len(jobs) > 0 {
			t.Errorf("jobs of %s: %+v, %v", verb, jobs, err)
		}
	}
}

// some stores events of a topic of kind log or meter, from one number to another.
func (e *env) some(topic *schemas.Topic, from, to int) {
	e.t.Helper()
	if topic.Kind != kinds.Meter {
		e.say(e.producer(topic.Name), to-from)
		return
	}
	for i := from; i < to; i++ {
		e.diffs(topic.Name, february(3, i, fmt.Sprint("again-", i), 1))
	}
}
