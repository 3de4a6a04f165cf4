package producer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer/spool"
	"github.com/almanac-events/almanac/schemas"
)

// The first start needs the registry, and says so; a directory serves one
// producer; a topic that was declared again gets nothing of the old one.
func TestSpoolStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := Connect(t.Context(), nowhere, spooling(dir))
	if !errors.Is(err, ErrConnect) || !strings.Contains(err.Error(), "first start") {
		t.Fatalf("first start without a server: %v", err)
	}
	e := newEnv(t, app)
	p := e.connect(spooling(dir))
	if _, err := Connect(e.ctx(), e.srv.ClientURL(), spooling(dir)); !errors.Is(err, spool.ErrLocked) {
		t.Fatalf("second producer on one directory: %v", err)
	}
	e.must(p.Close(e.ctx()))
	var mu sync.Mutex
	var last error
	cfg := spooling(dir)
	cfg.Hooks.OnError = func(err error) { mu.Lock(); last = err; mu.Unlock() }
	e.stopServer()
	q := e.connect(cfg)
	q.Log(Event{UserID: "u", Message: "0"})
	eventually(t, "on disk", func() bool { return q.Stats().Spool.Events == 1 })
	e.startServer()
	eventually(t, "sent after the registry confirmed", func() bool { return q.Stats().Stored == 1 })
	e.must(q.Close(e.ctx()))

	e.stopServer()
	r := e.connect(cfg)
	r.Log(Event{UserID: "u", Message: "1"})
	eventually(t, "on disk", func() bool { return r.Stats().Spool.Events == 1 })
	e.startServer()
	other := app
	other.Lanes = app.Lanes + 1
	e.declare(other)
	eventually(t, "the topic is another", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return errors.Is(last, schemas.ErrTopicChange) || r.Stats().Stored > 0
	})
	if s := r.Stats(); s.Stored == 1 {
		t.Skip("the registry answered before the topic was changed")
	}
	short, cancel := context.WithTimeout(e.ctx(), time.Millisecond)
	defer cancel()
	if err := r.Close(short); !errors.Is(err, ErrSpooled) {
		t.Fatalf("Close: %v", err)
	}
}

func (e *env) declare(topic schemas.Topic) {
	e.tb.Helper()
	kv, err := e.js.KeyValue(e.ctx(), schemas.Bucket)
	e.must(err)
	text, err := json.Marshal(topic)
	e.must(err)
	_, err = kv.Put(e.ctx(), schemas.TopicKey(topic.Name), text)
	e.must(err)
}

// A start with a large spool does not wait for it: Log works at once, and the
// spool is read as it is sent.
func TestSpoolDrainsWhileNewEventsGo(t *testing.T) {
	t.Parallel()
	e := newEnv(t, app)
	dir := t.TempDir()
	p := e.connect(spooling(dir))
	e.stopServer()
	const old = 30_000
	for i := range old {
		e.must(p.Submit(e.ctx(), Event{UserID: user(i), Message: fmt.Sprint(i)}, nil))
	}
	short, cancel := context.WithTimeout(e.ctx(), time.Millisecond)
	defer cancel()
	if err := p.Close(short); !errors.Is(err, ErrSpooled) {
		t.Fatalf("Close: %v", err)
	}
	// One frame's bytes are flipped meanwhile: it is passed over and named.
	names, err := filepath.Glob(filepath.Join(dir, "*", "*.spool"))
	e.must(err)
	text, err := os.ReadFile(names[0])
	e.must(err)
	text[len(text)/2] ^= 1
	e.must(os.WriteFile(names[0], text, 0o600))

	e.startServer()
	var mu sync.Mutex
	var told []string
	cfg := spooling(dir)
	cfg.Hooks.OnError = func(err error) { mu.Lock(); told = append(told, err.Error()); mu.Unlock() }
	q := e.connect(cfg)
	e.must(q.Publish(e.ctx(), Event{UserID: "u", Message: "new"}))
	e.must(q.Flush(e.ctx()))
	s := q.Stats()
	if s.Spool.Corrupt != 1 || s.Spool.Replayed >= old || s.Spool.Replayed < old-schemas.FrameRows || s.Stored != 1 {
		t.Fatalf("%+v", s)
	}
	eventually(t, "what was damaged is reported", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(strings.Join(told, "\n"), filepath.Base(names[0]))
	})
	eventually(t, "what was damaged is put aside", func() bool {
		_, err := os.Stat(names[0] + ".damaged")
		return err == nil && segments(t, dir) == 0
	})
	seen := map[string]bool{}
	for _, ev := range e.events(&app) {
		if seen[ev.Message] {
			t.Fatalf("%s twice", ev.Message)
		}
		seen[ev.Message] = true
	}
	if uint64(len(seen)) != s.Spool.Replayed+1 {
		t.Fatalf("%d events, want %d", len(seen), s.Spool.Replayed+1)
	}
}

// Fields may have been added since; anything else is another topic.
func TestSameTopic(t *testing.T) {
	t.Parallel()
	wanted := schemas.NewTopic("app", app.Fields[0], schemas.Field{Name: "host", Type: schemas.TypeString})
	wanted.Lanes = app.Lanes
	more, err := app.Evolve(wanted)
	if err != nil {
		t.Fatal(err)
	}
	lanes, key, fields := app, app, app
	lanes.Lanes++
	key.LaneBy = []string{"service"}
	fields.Fields = []schemas.Field{{Name: "duration_ms", Type: schemas.TypeInt64, Since: 1}}
	for name, c := range map[string]struct {
		has  schemas.Topic
		same bool
	}{"itself": {app, true}, "more fields": {more, true}, "lanes": {lanes, false}, "lane_by": {key, false}, "fields": {fields, false}} {
		t.Run(name, func(t *testing.T) {
			if err := sameTopic(app, c.has); (err == nil) != c.same || err != nil && !errors.Is(err, schemas.ErrTopicChange) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if err := sameTopic(more, app); err == nil {
		t.Error("a topic that lost fields is the same")
	}
}
