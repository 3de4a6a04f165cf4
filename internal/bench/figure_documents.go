package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/maintenance/cleaner"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	topickinds "github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

const (
	documentsStored  = 1_000_000
	documentsTopic   = "bench_documents"
	documentsPath    = "p"
	documentsPage    = 500
	documentsLoads   = 2000
	documentsWrites  = 8000 // of a round of 64 callers; one caller makes a quarter
	documentsCallers = 64
	// documentsCold is later than a cleaner's settle and the topic's hot_for.
	documentsCold = time.Hour
)

// documentFigures measures a store of a million documents: writes by one caller and by 64, loads
// of hot and of cold ones, and pages of a list against the best SQL by hand.
func documentFigures(ctx context.Context, s *Suite) ([]Figure, error) {
	h, err := s.Environment(ctx)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	topic := schemas.NewTopicOf(topickinds.Document, documentsTopic)
	topic.Documents.MaxDocuments = 2 * documentsStored
	if _, _, err := h.Registry.Apply(ctx, topic, false); err != nil {
		return nil, err
	}
	d := &documentStore{s: s, h: h, n: s.size(documentsStored)}
	defer d.close()
	if d.c, err = d.open(ctx, 0); err != nil {
		return nil, err
	}
	writes, err := d.writes(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.fill(ctx); err != nil {
		return nil, err
	}
	cfg := s.config(h, Config{})
	p, err := startParts(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	if err := d.archive(p.ctx); err != nil {
		return nil, p.failed(err)
	}
	hot, err := d.loads(p.ctx, "hot", 5)
	if err != nil {
		return nil, p.failed(err)
	}
	if err := d.becomeCold(p.ctx); err != nil {
		return nil, p.failed(err)
	}
	cold, err := d.loads(p.ctx, "cold", 50)
	if err != nil {
		return nil, p.failed(err)
	}
	pages, err := d.pages(p.ctx)
	return append([]Figure{writes, hot, cold}, pages...), p.failed(err)
}

// documentStore is a topic of n documents.
type documentStore struct {
	s *Suite
	h *Environment
	n int
	c *documents.Collection

	conns []*nats.Conn
}

func (d *documentStore) close() {
	for _, nc := range d.conns {
		nc.Close()
	}
}

// open opens the topic over a connection of its own. single is as of fronts.Config.
func (d *documentStore) open(ctx context.Context, single int) (*documents.Collection, error) {
	nc, err := d.h.Connect()
	if err != nil {
		return nil, err
	}
	d.conns = append(d.conns, nc)
	return documents.Open(ctx, nc, documentsTopic, documents.Config{By: "bench", Archive: archive.New(d.h.Registry, d.h.DB), Write: fronts.Config{Single: single}})
}

// create is the creation of a document of some 300 bytes.
func (d *documentStore) create(id string, i int) documents.Op {
	return documents.Op{Kind: documents.Create, ID: id, Path: documentsPath, Body: fmt.Appendf(nil, `{"status":"active","name":"%s","n":%d}`, strings.Repeat("x", 250), i)}
}

// atOnce calls work with each number below n, by so many at once.
func atOnce(ctx context.Context, n, callers int, work func(ctx context.Context, i int) error) error {
	g, gctx := errgroup.WithContext(ctx)
	for w := range callers {
		g.Go(func() error {
			for i := w; i < n; i += callers {
				if err := work(gctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// writes creates documents by one caller, by 64 one by one, and by 64 in groups, in turn. Nothing
// routes meanwhile, and all are gone afterwards.
func (d *documentStore) writes(ctx context.Context) (Figure, error) {
	ways := []struct {
		name            string
		callers, single int
	}{{"alone", 1, 0}, {"one_by_one", documentsCallers, -1}, {"groups", documentsCallers, 0}}
	stores := make([]*documents.Collection, len(ways))
	for w, way := range ways {
		c, err := d.open(ctx, way.single)
		if err != nil {
			return Figure{}, err
		}
		stores[w] = c
	}
	rates, rounds := make([][]float64, len(ways)), d.s.rounds(5)
	for round := range rounds {
		d.s.Progress("", "creates", round, rounds)
		for w, way := range ways {
			n := d.s.size(documentsWrites)
			if way.callers == 1 {
				n /= 4
			}
			began := time.Now()
			if err := atOnce(ctx, n, way.callers, func(ctx context.Context, i int) error {
				_, err := stores[w].Write(ctx, d.create(fmt.Sprintf("%s-%d-%d", way.name, round, i), i))
				return err
			}); err != nil {
				return Figure{}, err
			}
			rates[w] = append(rates[w], float64(n)/time.Since(began).Seconds())
		}
	}
	alone, single, groups := median(rates[0]), median(rates[1]), median(rates[2])
	return atLeast("documents_groups", fmt.Sprintf("creates by %d callers in groups, against one by one", documentsCallers), groups/single, unitRatio, 2,
		"%d rounds in turn, medians: %.0f/s by one caller, %.0f/s by %d one by one, %.0f/s by %d in groups", rounds, alone, single, documentsCallers, groups, documentsCallers).
		raw("alone_per_second", alone, "one_by_one_per_second", single, "groups_per_second", groups), streams.Purge(ctx, d.h.Registry.JetStream(), schemas.StreamDocs, schemas.DocTopicFilter(documentsTopic), streams.Refuse)
}

// fill creates the documents by batches of 500.
func (d *documentStore) fill(ctx context.Context) error {
	d.s.Progress("", "documents", 0, d.n)
	return atOnce(ctx, (d.n+documents.MaxBatch-1)/documents.MaxBatch, 4, func(ctx context.Context, batch int) error {
		var ops []documents.Op
		for i := batch * documents.MaxBatch; i < min(d.n, (batch+1)*documents.MaxBatch); i++ {
			ops = append(ops, d.create(fmt.Sprint("d-", i), i))
		}
		_, err := d.c.Batch(ctx, ops...)
		return err
	})
}

// archive waits until all have a row.
func (d *documentStore) archive(ctx context.Context) error {
	for {
		heads, err := d.h.DB.Heads(ctx, documentsTopic)
		if err != nil {
			return err
		}
		var rows uint64
		if len(heads) > 0 { // else there is no table yet
			if err := d.h.DB.Conn().QueryRow(ctx, "SELECT count() FROM "+sql.QuotedTable(d.h.DB.Database, documentsTopic)).Scan(&rows); err != nil {
				return err
			}
		}
		if rows >= uint64(d.n) {
			return nil
		}
		d.s.Progress("", "archived", int(rows), d.n)
		if err := backoff.Sleep(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// becomeCold leaves a stub of each in DOCS.
func (d *documentStore) becomeCold(ctx context.Context) error {
	c := cleaner.New(cleaner.Config{Registry: d.h.Registry, DB: d.h.DB, MinAge: time.Minute})
	for stubs := 0; stubs < d.n; {
		d.s.Progress("", "cold", stubs, d.n)
		done, err := c.Round(ctx, time.Now().Add(documentsCold))
		if err != nil {
			return err
		}
		if stubs += done.Stubbed; done.Stubbed == 0 {
			return fmt.Errorf("%d of %d documents became cold: %+v", stubs, d.n, done)
		}
	}
	return nil
}

// blockIdle is longer than NATS keeps a block of a stream in memory that is not read: 10 s, and its look each 10
// (defaultCacheBufferExpiration in the server's file store).
const blockIdle = 25 * time.Second

// loads times loads at random. A pass before them is not counted: in it the processes take the memory that they
// keep afterwards. To read a block into memory that the process did not have takes twice as long, and seven times where a virtual
// machine did not have it either (docs/measurements.md, 25 November 2026). Then NATS
// lets go of what it read, so that loads that read a block of the stream are among those that count.
func (d *documentStore) loads(ctx context.Context, name string, bar float64) (Figure, error) {
	first, err := d.load(ctx)
	if err != nil {
		return Figure{}, err
	}
	if d.s.Size != Quick {
		if err := d.s.wait(ctx, "NATS lets go", blockIdle); err != nil {
			return Figure{}, err
		}
	}
	all, err := d.load(ctx)
	if err != nil {
		return Figure{}, err
	}
	p50, p99 := millis(all.quantile(0.5)), millis(all.quantile(0.99))
	return atMost("documents_load_"+name, "a load of a "+name+" document, 99th percentile", p99, unitMillis, bar,
		"%s loads at random among %s documents, one after the other, nothing of them in NATS's memory at first: p50 %.2f ms; a pass before, which is not counted, p99 %.1f ms", count(len(all)), count(d.n), p50, millis(first.quantile(0.99))).
		raw("p50_ms", p50, "first_pass_p99_ms", millis(first.quantile(0.99))), nil
}

// load times loads at random.
func (d *documentStore) load(ctx context.Context) (took samples, err error) {
	for range min(d.n, documentsLoads) {
		began := time.Now()
		if _, err := d.c.Load(ctx, fmt.Sprint("d-", rand.IntN(d.n))); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// pages reads a list page by page, and each page by hand too: keys first, then the bodies of those that are listed.
func (d *documentStore) pages(ctx context.Context) ([]Figure, error) {
	table := sql.QuotedTable(d.h.DB.Database, documentsTopic)
	byHand := func(after *documents.Document) string {
		return fmt.Sprintf("SELECT doc_id, path, created, ts, version, `by`, body FROM %[1]s WHERE path = '%[2]s' AND (path, created, doc_id, version) IN ("+
			"SELECT path, created, doc_id, version FROM (SELECT path, created, doc_id, version, op FROM %[1]s WHERE path = '%[2]s' AND (created, doc_id) < (fromUnixTimestamp64Nano(%[3]d, 'UTC'), '%[4]s') "+
			"ORDER BY path DESC, created DESC, doc_id DESC, version DESC LIMIT 1 BY created, doc_id) WHERE op != 'removed' LIMIT %[5]d) ORDER BY created DESC, doc_id DESC "+
			"SETTINGS optimize_read_in_order = 1, max_block_size = 1024, max_threads = 1", table, documentsPath, after.Created.UnixNano(), after.ID, documentsPage+1)
	}
	sel := documents.Selection{Path: documentsPath, Limit: documentsPage}
	began := time.Now()
	page, err := d.c.List(ctx, sel)
	if err != nil {
		return nil, err
	}
	first := millis(time.Since(began))
	var ours, hand samples
	rounds := d.s.rounds(60)
	for i := range rounds {
		d.s.Progress("", "pages", i, rounds)
		last := page.Documents[len(page.Documents)-1]
		if sel.Cursor = page.Cursor; sel.Cursor == "" {
			break
		}
		began := time.Now()
		if page, err = d.c.List(ctx, sel); err != nil {
			return nil, err
		}
		ours = append(ours, time.Since(began))
		began = time.Now()
		rows, err := selectLines(ctx, d.h.DB, byHand(last))
		if err != nil {
			return nil, err
		}
		if hand = append(hand, time.Since(began)); rows < len(page.Documents) {
			return nil, fmt.Errorf("by hand a page has %d documents, expected %d", rows, len(page.Documents))
		}
	}
	a, b := millis(ours.quantile(0.5)), millis(hand.quantile(0.5))
	how := fmt.Sprintf("%d pages in turn over %s documents, medians: %.1f ms against %.1f ms by hand; the first page, which asks what is stored, %.1f ms", len(ours), count(d.n), a, b, first)
	return []Figure{
		atMost("documents_page", "a page of 500 documents, against the best SQL by hand", a/b, unitRatio, maxByHand, "%s", how).raw("ms", a, "by_hand_ms", b, "first_ms", first),
		atMost("documents_page_ms", "a page of 500 documents", a, unitMillis, 60, "%s", how).raw("p99_ms", millis(ours.quantile(0.99))),
	}, nil
}
