package documents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/kinds"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// maxWait is how long anything may take on a busy machine.
const maxWait = 2 * time.Minute

// open opens the documents of a topic of its own, on NATS alone.
func open(t *testing.T, change func(*schemas.Topic)) (*Collection, context.Context) {
	t.Helper()
	return openOn(t, embeddedtest.Start(t, embeddedtest.WithoutClickHouse()), change)
}

func openOn(t testing.TB, srv *embeddedtest.Servers, change func(*schemas.Topic)) (*Collection, context.Context) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	t.Cleanup(cancel)
	reg, err := registry.Setup(ctx, srv.NC(), schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 64 << 20, RegistryBytes: 8 << 20, DocsBytes: 64 << 20, Replicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	topic := schemas.NewTopicOf(kinds.Document, "customers")
	if change != nil {
		change(&topic)
	}
	if _, _, err := reg.Apply(ctx, topic, false); err != nil {
		t.Fatal(err)
	}
	c, err := Open(ctx, srv.NC(), "customers", Config{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return c, ctx
}

// Eight creates of one id at once: one wins, seven are told that it exists. Created stays
// over updates, and changed grows strictly, also where the clock stands still.
func TestCreateAtOnce(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	c.cfg.Now = func() time.Time { return noon }
	const rounds = 1000
	for round := range rounds {
		id := fmt.Sprintf("abcd%04d", round)
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { _, errs[i] = c.Create(ctx, Draft{ID: id, Body: []byte(`{}`)}) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, ErrExists) {
				t.Fatal(err)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d creates won", round, won)
		}
	}
	last := noon
	for version := uint64(2); version <= 4; version++ {
		d, err := c.Update(ctx, "abcd0000", IfVersion(version-1), []byte(`{"a":1}`))
		if err != nil || d.Version != version || !d.Created.Equal(noon) || !d.Changed.After(last) {
			t.Fatalf("%+v, %v after %s", d, err, last)
		}
		last = d.Changed
	}
}

// A create is sent without a look unless ids were taken of late. What it finds there is the same
// either way.
func TestCreateWithoutALook(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, func(topic *schemas.Topic) { topic.Documents.MaxDocuments = 2 })
	body := []byte(`{}`)
	create := func(id string) (*Document, error) { return c.Create(ctx, Draft{ID: id, Body: body}) }
	if d, err := create("abcd0001"); err != nil || d.Version != 1 || c.taken.Load() {
		t.Fatal(d, err)
	}
	if _, err := create("abcd0001"); !errors.Is(err, ErrExists) || !c.taken.Load() {
		t.Errorf("taken: %v", err)
	}
	if _, err := create("abcd0001"); !errors.Is(err, ErrExists) {
		t.Errorf("taken, and looked for: %v", err)
	}
	if d, err := create("abcd0002"); err != nil || d.Version != 1 || c.taken.Load() {
		t.Errorf("free, and looked for: %+v, %v", d, err)
	}
	if err := c.Remove(ctx, "abcd0002", Always); err != nil {
		t.Fatal(err)
	}
	c.usage.keys = 1 // an id that is used again counts twice until DOCS is looked at
	if d, err := create("abcd0002"); err != nil || d.Version != 3 {
		t.Errorf("removed: %+v, %v", d, err)
	}
	c.taken.Store(false)
	if _, err := create("abcd0001"); !errors.Is(err, ErrExists) {
		t.Errorf("taken, where there is no room: %v", err)
	}
	c.taken.Store(false)
	if _, err := create("abcd0003"); !errors.Is(err, ErrFull) {
		t.Errorf("no room: %v", err)
	}
}

// Of two updates with one version one wins, and the other is told what is there. An update
// without a version overwrites.
func TestVersions(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	if _, err := c.Create(ctx, Draft{ID: "a", Path: "se/uppsala", Body: []byte(`{"n": 1}`)}); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { _, errs[i] = c.Update(ctx, "a", IfVersion(1), []byte(`{"n":2}`)) })
	}
	wg.Wait()
	if errs[0] != nil {
		errs[0], errs[1] = errs[1], errs[0]
	}
	var refused *VersionError
	if errs[0] != nil || !errors.As(errs[1], &refused) || refused.Have != 2 || !errors.Is(errs[1], ErrVersion) {
		t.Fatalf("%v", errs)
	}
	if d, err := c.Update(ctx, "a", Always, []byte(`{"n":3}`)); err != nil || d.Version != 3 || d.Path != "se/uppsala" {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err := c.Load(ctx, "a"); err != nil || string(d.Body) != `{"n":3}` || d.By != "test" {
		t.Fatalf("%+v, %v", d, err)
	}
	if err := c.Remove(ctx, "a", IfVersion(2)); !errors.Is(err, ErrVersion) {
		t.Fatalf("removing another version: %v", err)
	}
	if err := c.Remove(ctx, "a", IfVersion(3)); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"removed twice": c.Remove(ctx, "a", Always),
		"loaded":        func() error { _, err := c.Load(ctx, "a"); return err }(),
		"updated":       func() error { _, err := c.Update(ctx, "a", Always, []byte(`{}`)); return err }(),
	} {
		t.Run(what, func(t *testing.T) {
			if !errors.Is(err, ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
	if d, err := c.Create(ctx, Draft{ID: "a", Path: "no", Body: []byte(`{}`)}); err != nil || d.Version != 5 || d.Path != "no" {
		t.Errorf("created again: %+v, %v", d, err)
	}
}

// Ids, paths and bodies are refused by name, with the number and the limit.
func TestRefused(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, func(topic *schemas.Topic) { topic.Documents.MaxBytes, topic.Documents.MaxDocuments = 100, 3 })
	for name, n := range map[string]struct {
		Draft
		want error
		says string
	}{
		"id":         {Draft{ID: "a.b", Body: []byte(`{}`)}, document.ErrID, "[A-Za-z0-9_-]"},
		"path":       {Draft{ID: "a", Path: "a/*", Body: []byte(`{}`)}, document.ErrPath, "64"},
		"no JSON":    {Draft{ID: "a", Body: []byte(`{`)}, document.ErrBody, "JSON"},
		"no UTF-8":   {Draft{ID: "a", Body: []byte("{\"a\":\"\xff\"}")}, document.ErrBody, "UTF-8"},
		"no object":  {Draft{ID: "a", Body: []byte(`[1]`)}, document.ErrBody, "object"},
		"empty":      {Draft{ID: "a"}, document.ErrBody, "JSON"},
		"large":      {Draft{ID: "a", Body: []byte(`{"a":"` + strings.Repeat("x", 100) + `"}`)}, document.ErrBody, "the limit is 100"},
		"long names": {Draft{ID: strings.Repeat("x", 129), Body: []byte(`{}`)}, document.ErrID, "1 to 128"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Create(ctx, n.Draft)
			if !errors.Is(err, n.want) || !errors.Is(err, schemas.ErrRequest) || !strings.Contains(err.Error(), n.says) {
				t.Errorf("%v", err)
			}
		})
	}
	for i := range 3 {
		if _, err := c.Create(ctx, Draft{Body: []byte(`{}`)}); err != nil {
			t.Fatalf("document %d: %v", i, err)
		}
	}
	if _, err := c.Create(ctx, Draft{Body: []byte(`{}`)}); !errors.Is(err, ErrFull) || !strings.Contains(err.Error(), "allows 3") {
		t.Errorf("above max_documents: %v", err)
	}
}

// LoadMany is aligned with its ids, and leaves gaps.
func TestLoadMany(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	var ids []string
	for i := range 700 {
		ids = append(ids, fmt.Sprint("d-", i))
	}
	var wg sync.WaitGroup
	for i := 0; i < len(ids); i += 2 {
		wg.Go(func() {
			if _, err := c.Create(ctx, Draft{ID: ids[i], Body: []byte(`{}`)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	docs, err := c.LoadMany(ctx, append(ids, ids[0]))
	if err != nil || len(docs) != len(ids)+1 {
		t.Fatal(len(docs), err)
	}
	for i, d := range docs {
		if id := append(ids, ids[0])[i]; (d != nil) != (i%2 == 0) || d != nil && d.ID != id {
			t.Fatalf("document %d of id %s is %+v", i, id, d)
		}
	}
	if _, err := c.LoadMany(ctx, make([]string, maxLoad+1)); !errors.Is(err, schemas.ErrRequest) {
		t.Errorf("%v", err)
	}
}

// A topic of another kind is refused by name.
func TestOtherKind(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	if _, _, err := c.reg.Apply(ctx, schemas.NewTopic("app"), false); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(ctx, c.reg.JetStream().Conn(), "app", Config{}); !errors.Is(err, ErrKind) || !strings.Contains(err.Error(), "kind log") {
		t.Errorf("%v", err)
	}
}

func TestUserOf(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"owner":"u-7"}`:                "u-7",
		`{"owner":77}`:                   "77",
		`{"owner":12345678901234567890}`: "12345678901234567890",
		`{"owner":null}`:                 "",
		`{"owner":{"id":"u"}}`:           "",
		`{"n":1}`:                        "",
		`[]`:                             "",
	} {
		if got := userOf([]byte(body), "owner"); got != want {
			t.Errorf("%s is of %q, want %q", body, got, want)
		}
	}
	for body, want := range map[string]string{`{"a":{"b":"u"}}`: "u", `{"a.b":"v","a":{"b":"u"}}`: "v", `{"a":1}`: "", `{"b":"u"}`: ""} {
		if got := userOf([]byte(body), "a.b"); got != want {
			t.Errorf("%s is of %q, want %q", body, got, want)
		}
	}
}

// A create of an id that is cold exists, also where it was sent without a look and its answer
// was lost.
func TestCreateOfAStubUnanswered(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	c, ctx := openOn(t, srv, nil)
	var lost atomic.Int64
	url := embeddedtest.AnswersProxy(t, srv.NATSURL, func(a embeddedtest.Answer) embeddedtest.Fate {
		return embeddedtest.Fate{Drop: strings.Contains(string(a.Data), "wrong last sequence") && lost.Add(1) == 1}
	})
	nc, _ := embeddedtest.Dial(t, url)
	other, err := Open(ctx, nc, "customers", Config{Write: fronts.Config{Answer: 200 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(ctx, Draft{ID: "abcd0001", Body: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	last, err := c.last(ctx, "abcd0001")
	if err != nil {
		t.Fatal(err)
	}
	stub := *last
	stub.Stub, stub.Body = &schemas.FrontPlace{Month: 202611, Shard: 7, Seq: last.Seq}, nil
	if _, err := c.w.Put(ctx, record(&stub, last)); err != nil {
		t.Fatal(err)
	}
	streamed, err := c.reg.JetStream().Stream(ctx, schemas.StreamDocs)
	if err == nil {
		err = streamed.DeleteMsg(ctx, last.Seq)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Create(ctx, Draft{ID: "abcd0001", Body: []byte(`{}`)}); !errors.Is(err, ErrExists) || lost.Load() < 1 {
		t.Errorf("%v, %d answers lost", err, lost.Load())
	}
}

// A collection that is open since before its topic was removed refuses changes, and so do its locks.
func TestRemovedTopicIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	if _, err := c.Create(ctx, Draft{ID: "a", Path: "p", Body: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	name := c.topic.Name
	if _, err := c.reg.BeginRemoval(ctx, name, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := c.reg.ForgetTopic(ctx, name); err != nil {
		t.Fatal(err)
	}
	c.removed = registry.NewGuard(c.reg, c.topic, time.Now().Add(-registry.GuardStaleness))
	if _, err := c.Create(ctx, Draft{ID: "b", Path: "p", Body: []byte(`{}`)}); !errors.Is(err, schemas.ErrUnknownTopic) || !c.Gone() {
		t.Errorf("a document: %v", err)
	}
	if err := c.Remove(ctx, "a", Always); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Errorf("a removal: %v", err)
	}
	if _, err := c.Lock(ctx, "a", "x", time.Minute); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Errorf("a lock: %v", err)
	}
}
