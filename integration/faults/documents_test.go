package faults

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/backoff"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

const docsTopic = "customers"

// ofDocuments builds a cluster with a topic of documents, and opens them.
func ofDocuments(ctx context.Context, t *testing.T, hotFor, keep, timeout time.Duration) (*Cluster, *registry.Registry, *documents.Collection) {
	t.Helper()
	h := Build(t, Plan{Keep: keep})
	reg, err := registry.Open(ctx, h.NC)
	if err != nil {
		t.Fatal(err)
	}
	topic := schemas.NewTopicOf(kinds.Document, docsTopic)
	topic.Documents.HotFor = hotFor
	if _, _, err := reg.Apply(ctx, topic, false); err != nil {
		t.Fatal(err)
	}
	db, err := tables.Open(h.dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	cfg := documents.Config{By: "checker", Archive: archive.New(reg, db)}
	cfg.Write.Timeout = timeout
	c, err := documents.Open(ctx, h.NC, docsTopic, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h, reg, c
}

// TestDocumentsUnderKills kills NATS, ClickHouse, router, sink (with its cleaner) and writers while eight writers change
// documents, and while others do what is promised of one document and of a list. The versions of each document in ClickHouse are 1 to n, each
// once, with the body that was acknowledged; the last one is loaded; verify proves it; and DOCS has one stub of each.
// ALMANAC_DOCUMENTS_WRITTEN writes to a fiftieth as many documents, ALMANAC_DOCUMENTS_KILLS kills of each part.
func TestDocumentsUnderKills(t *testing.T) {
	const writers, listed = 8, 1203
	writes, kills := number("ALMANAC_DOCUMENTS_WRITTEN", 2000), number("ALMANAC_DOCUMENTS_KILLS", 1)
	_, rnd := Seed(t)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute+time.Duration(kills)*time.Minute)
	defer cancel()
	h, reg, c := ofDocuments(ctx, t, time.Second, docWriteTimeout+5*time.Second, docWriteTimeout)
	p := &docPromises{t: t, c: c}
	p.createListed(ctx, listed)
	parts := make([]*Part, writers)
	for i := range parts {
		parts[i] = h.part(Spec{
			Role: RoleDocuments, Name: fmt.Sprintf("documents-%d", i), NATS: h.natsURL, ClickHouse: h.dsn,
			Writer: Writer{Topic: docsTopic, Number: uint64(i), Events: writes / 50, Journal: filepath.Join(h.Dir, "journals", fmt.Sprintf("documents-%d", i))},
		})
		h.start(parts[i])
		t.Cleanup(parts[i].Kill)
	}
	for _, w := range parts {
		h.ready(w)
	}
	var wg sync.WaitGroup
	working, stop := context.WithCancel(ctx)
	defer stop()
	for _, work := range []func(context.Context, int){p.oneCreateWins, p.oneUpdateWins, func(ctx context.Context, _ int) { p.eachListedOnce(ctx, listed) }} {
		wg.Go(func() {
			for round := 0; working.Err() == nil && !t.Failed(); round++ {
				work(ctx, round)
			}
		})
	}
	deaths := map[Role]int{}
	for range kills {
		for _, role := range []Role{RoleDocuments, RoleNATS, RoleRouter, RoleSink, RoleEngine} {
			if err := backoff.Sleep(ctx, Between(rnd, 0, time.Second)); err != nil {
				t.Fatal(err)
			}
			victim := parts[rnd.IntN(writers)]
			if role != RoleDocuments {
				victim, _ = h.pick(role, rnd)
			}
			victim.Kill()
			h.start(victim)
			h.ready(victim)
			deaths[role]++
		}
	}
	acked := func() (n uint64) {
		for _, w := range parts {
			n += w.Said("acked")
		}
		return n
	}
	if err := until(ctx, 15*time.Minute, 100*time.Millisecond, func(context.Context) error {
		if n := acked(); n < uint64(writes) {
			return fmt.Errorf("%d of %d writes are acknowledged", n, writes)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	stop()
	wg.Wait()
	for _, w := range parts {
		if err := w.Finish(ctx); err != nil {
			t.Error(err)
		}
	}
	proven(ctx, t, h, reg, docsTopic, true)
	told := readDocJournals(t, parts)
	t.Logf("deaths %v; %d writes acknowledged, %d of unknown fate; promises %v", deaths, told.acked, told.unknown, p.rounds)
	told.compare(ctx, t, h)
	stubs(ctx, t, reg, len(told.versions)+listed+int(p.documents.Load()))
	told.loads(ctx, t, c)
}

// docsTold is what document writers wrote down: the body of each version that was acknowledged, and the bodies of
// which they were told nothing.
type docsTold struct {
	versions       map[string]map[uint64]string
	unsure         map[string]bool // by body
	acked, unknown int
}

func readDocJournals(t *testing.T, parts []*Part) *docsTold {
	t.Helper()
	told := &docsTold{versions: map[string]map[uint64]string{}, unsure: map[string]bool{}}
	for _, w := range parts {
		data, err := os.ReadFile(w.Spec.Writer.Journal)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			var l docLine
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatalf("%s: %v in %q", w.Spec.Name, err, line)
			}
			if told.versions[l.ID] == nil {
				told.versions[l.ID] = map[uint64]string{}
			}
			if l.Version == 0 && !l.Refused {
				told.unsure[l.Body] = true
				continue
			}
			if delete(told.unsure, l.Body); l.Refused {
				continue
			}
			if was, twice := told.versions[l.ID][l.Version]; twice {
				t.Errorf("%s: version %d was acknowledged twice: %s and %s", l.ID, l.Version, was, l.Body)
			}
			told.versions[l.ID][l.Version] = l.Body
			told.acked++
		}
	}
	told.unknown = len(told.unsure)
	return told
}

// compare holds the rows to what was told, and adds to it what was stored without a word.
func (d *docsTold) compare(ctx context.Context, t *testing.T, h *Cluster) {
	t.Helper()
	rows, silent := 0, 0
	err := h.SQL.Do(ctx, "SELECT doc_id, version, body FROM "+docsTopic+" WHERE path = 'p' ORDER BY doc_id, version FORMAT JSONEachRow SETTINGS output_format_json_quote_64bit_integers = 0", func(r io.Reader) error {
		lines := bufio.NewScanner(r)
		last, version := "", uint64(0)
		for lines.Scan() {
			var row struct {
				ID      string `json:"doc_id"`
				Version uint64 `json:"version"`
				Body    string `json:"body"`
			}
			if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
				return err
			}
			if rows++; row.ID != last {
				last, version = row.ID, 0
			}
			if version++; row.Version != version {
				t.Errorf("%s: version %d follows %d", row.ID, row.Version, version-1)
				version = row.Version
			}
			switch was, known := d.versions[row.ID][row.Version]; {
			case known && was != row.Body:
				t.Errorf("%s: version %d is %s, %s was acknowledged", row.ID, row.Version, row.Body, was)
			case !known && !d.unsure[row.Body]:
				t.Errorf("%s: version %d, %s, was asked for by none", row.ID, row.Version, row.Body)
			case !known:
				silent++
				d.versions[row.ID][row.Version] = row.Body
				delete(d.unsure, row.Body)
			}
		}
		return lines.Err()
	})
	if err != nil || rows != d.acked+silent {
		t.Errorf("%d rows, %d writes acknowledged and %d stored without a word, %v", rows, d.acked, silent, err)
	}
	for id, versions := range d.versions {
		if len(versions) == 0 {
			delete(d.versions, id) // its only write was lost with its writer
		}
	}
}

// loads holds that the last version of each document is loaded.
func (d *docsTold) loads(ctx context.Context, t *testing.T, c *documents.Collection) {
	t.Helper()
	for id, versions := range d.versions {
		if got, err := c.Load(ctx, id); err != nil || got.Version != uint64(len(versions)) || string(got.Body) != versions[got.Version] {
			t.Errorf("%s: %+v, %v; expected version %d, %s", id, got, err, len(versions), versions[uint64(len(versions))])
		}
	}
}

// stubs waits until DOCS has one message of each document, without a body.
func stubs(ctx context.Context, t *testing.T, reg *registry.Registry, n int) {
	t.Helper()
	err := until(ctx, recoveryLimit, 200*time.Millisecond, func(ctx context.Context) error {
		messages, whole := 0, 0
		_, err := streams.Headers(ctx, reg.JetStream(), schemas.StreamDocs, schemas.DocTopicFilter(docsTopic), 1, func(m *streams.Message) error {
			if messages++; m.Size > 0 {
				whole++
			}
			return nil
		})
		if err == nil && (messages != n || whole > 0) {
			err = fmt.Errorf("DOCS has %d messages, %d of them with a body, expected a stub of each of %d documents", messages, whole, n)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// asked is the outcome of a call that was asked again until it came, whatever died meanwhile.
func asked(ctx context.Context, call func() error) (err error) {
	for {
		err = call()
		for _, known := range []error{nil, documents.ErrExists, documents.ErrNotFound, documents.ErrVersion, schemas.ErrRequest} {
			if errors.Is(err, known) {
				return err
			}
		}
		if backoff.Sleep(ctx, 50*time.Millisecond) != nil {
			return err
		}
	}
}
