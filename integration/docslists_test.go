package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/cleaner"
	archive "github.com/almanac-events/almanac/internal/query/documents"
)

// lifeOf is one life of an id as its only writer knows it.
type lifeOf struct {
	id       string
	created  time.Time
	asked    []time.Time // when each version was asked for, from 1 on
	done     []time.Time // when it was acknowledged
	removing time.Time   // when its removal was asked for
	removed  time.Time   // when that was acknowledged
}

// livesOf are all lives, of which a list says the truth or not.
type livesOf struct {
	mu  sync.Mutex
	all map[string][]*lifeOf // by id
}

func (l *livesOf) now(f func(time.Time)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(time.Now())
}

// write creates, updates and removes documents of its own until a time.
func (l *livesOf) write(t *testing.T, c *documents.Collection, prefix string, rnd *rand.Rand, until time.Time) {
	const ids = 30
	var lives [ids]*lifeOf
	pace := time.NewTicker(20 * time.Millisecond)
	defer pace.Stop()
	for ; time.Now().Before(until) && !t.Failed(); <-pace.C {
		i := rnd.IntN(ids)
		life := lives[i]
		if life != nil && rnd.IntN(6) == 0 {
			l.now(func(at time.Time) { life.removing = at })
			if err := c.Remove(t.Context(), life.id, documents.Always); err != nil {
				t.Error(err)
			}
			l.now(func(at time.Time) { life.removed = at })
			lives[i] = nil
			continue
		}
		if life == nil {
			life = &lifeOf{id: fmt.Sprint(prefix, i)}
		}
		l.now(func(at time.Time) {
			if life.asked = append(life.asked, at); lives[i] == nil {
				lives[i] = life
				l.all[life.id] = append(l.all[life.id], life)
			}
		})
		d, err := c.Put(t.Context(), documents.Draft{ID: life.id, Path: "p", Body: fmt.Appendf(nil, `{"n":%d}`, len(life.asked))})
		if err != nil {
			t.Error(err)
			return
		}
		l.now(func(at time.Time) { life.done, life.created = append(life.done, at), d.Created })
	}
}

// before counts the times that were before another.
func before(times []time.Time, at time.Time) (n int) {
	for _, t := range times {
		if t.Before(at) {
			n++
		}
	}
	return n
}

// walk lists all documents, and checks each page.
func (l *livesOf) walk(t *testing.T, c *documents.Collection, limit int) {
	began, seen, s := time.Now(), map[*lifeOf]bool{}, documents.Selection{Path: "p", Limit: limit}
	for last := (*documents.Document)(nil); ; {
		asked := time.Now()
		page, err := answered(func() (*documents.Page, error) { return c.List(t.Context(), s) })
		if err != nil {
			t.Error(err)
			return
		}
		ended := time.Now()
		if page.Cursor != "" && len(page.Documents) != limit {
			t.Errorf("a page of %d that is not the last, limit %d", len(page.Documents), limit)
		}
		l.mu.Lock()
		for _, d := range page.Documents {
			if last != nil && (d.Created.After(last.Created) || d.Created.Equal(last.Created) && d.ID >= last.ID) {
				t.Errorf("%s of %s comes after %s of %s", d.ID, d.Created, last.ID, last.Created)
			}
			last = d
			for _, life := range l.all[d.ID] {
				if !life.created.Equal(d.Created) {
					continue // or its create is not answered yet
				}
				body := 0
				_, err := fmt.Sscanf(string(d.Body), `{"n":%d}`, &body)
				if least, most := before(life.done, asked), before(life.asked, ended); err != nil || body < least || body > most {
					t.Errorf("%s is listed as %s, expected its version %d to %d", d.ID, d.Body, least, most)
				}
				if seen[life] || !life.removed.IsZero() && life.removed.Before(asked) {
					t.Errorf("%s is listed again, or after its removal: %t", d.ID, seen[life])
				}
				seen[life] = true
			}
		}
		l.mu.Unlock()
		if s.Cursor = page.Cursor; s.Cursor == "" {
			break
		}
	}
	ended := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, lives := range l.all {
		for _, life := range lives {
			if whole := before(life.done, began) > 0 && (life.removing.IsZero() || life.removing.After(ended)); whole && !seen[life] {
				t.Errorf("%s is not listed, though it was there for all of %s", id, ended.Sub(began))
			}
		}
	}
}

// A list has each document that is there for all of it once, as it was when the page was asked for
// or later, while others are written and removed, sinks are slow, the cleaner is fast, and what NATS
// answers the reader is late: records become stubs, and removals leave, between its reads.
func TestListsWhileRecordsLeave(t *testing.T) {
	t.Parallel()
	topic := docsTopic()
	topic.Documents.HotFor = time.Second
	e := start(t, topic)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	e.router()
	e.sink(func(c *sinkConfig) { c.Linger = 1500 * time.Millisecond })
	clean := cleaner.Config{Registry: e.registry(e.connect()), DB: e.sinkDB, MinAge: 100 * time.Millisecond}
	e.background(func(ctx context.Context) error { return runCleaner(ctx, clean) })
	lives := livesOf{all: map[string][]*lifeOf{}}
	var reads [2]*documents.Collection
	for i := range reads {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		nc := e.connectTo(embeddedtest.AnswersProxy(t, e.srv.NATSURL, func(embeddedtest.Answer) (f embeddedtest.Fate) {
			if rnd.IntN(60) == 0 {
				f.Delay = time.Duration(rnd.IntN(300)) * time.Millisecond
			}
			return f
		}))
		var err error
		if reads[i], err = documents.Open(t.Context(), nc, topic.Name, documents.Config{Archive: archive.New(e.registry(nc), e.db)}); err != nil {
			t.Fatal(err)
		}
	}
	until := time.Now().Add(5 * time.Second)
	parallel(t, 6, func(i int) {
		rnd := rand.New(rand.NewPCG(seed, uint64(10+i)))
		if i < 3 {
			lives.write(t, e.documents(topic.Name), fmt.Sprintf("w%d-", i), rnd, until)
			return
		}
		for time.Now().Before(until) && !t.Failed() {
			lives.walk(t, reads[i%len(reads)], 5+rnd.IntN(40))
		}
	})
	lives.walk(t, e.documents(topic.Name), 7)
}
