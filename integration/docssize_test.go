package integration

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// documentsAtSize is a store of many documents, and what it measured.
type documentsAtSize struct {
	*onDisk
	n    int
	body string
	c    *documents.Collection
}

// TestDocumentsAtSize holds that a store of many documents is whole after each step, and logs
// what the steps cost: 1,000 documents, or ALMANAC_DOCUMENTS.
//
//	ALMANAC_DOCUMENTS=1000000 go test ./integration -run TestDocumentsAtSize -v -timeout 60m
func TestDocumentsAtSize(t *testing.T) {
	t.Parallel()
	n := sized("ALMANAC_DOCUMENTS", 1000)
	d := &documentsAtSize{onDisk: &onDisk{dir: embeddedtest.NATSDir(t)}, n: n, body: `{"status":"active","name":"` + strings.Repeat("x", 250) + `","n":`}
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	d.env = &env{t: t, srv: srv}
	d.run()
	before := heap()
	d.env = setUpWithin(t, srv, schemas.StreamLimits{EventsBytes: 64 << 20, ShardsBytes: 3 << 30, RegistryBytes: 16 << 20, DocsBytes: 4 << 30, Replicas: 1}, docsTopic())
	d.c = d.documents("customers")
	d.rates()
	d.fill()
	stopRouter, stopSink := d.router(), d.sink()
	begun := time.Now()
	d.stored("customers", uint64(d.n), 30*time.Minute)
	t.Logf("%d documents were stored after %.0f s more", d.n, time.Since(begun).Seconds())
	hotLoads := d.loads("hot")
	d.becomeCold()
	runtime.GC()
	t.Logf("heap of the NATS server with %d stubs, and of this process: %d bytes a document, %d MB in all", d.n, int(heap()-before)/d.n, (heap()-before)>>20)
	coldLoads := d.loads("cold")
	d.pages()
	stopRouter()
	stopSink()
	d.restart()
	t.Logf("hot load p50 %s p99 %s, cold load p50 %s p99 %s", hotLoads[0], hotLoads[1], coldLoads[0], coldLoads[1])
}

// sized is a number of the environment, or a small one.
func sized(name string, small int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return small
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (d *documentsAtSize) new(i int) documents.Op {
	return documents.Op{Kind: documents.Create, ID: fmt.Sprint("d-", i), Path: "p", Body: []byte(d.body + strconv.Itoa(i) + "}")}
}

// rates writes documents by callers of a kind: by 64 one by one, by 64 in groups, and by one.
func (d *documentsAtSize) rates() {
	each := max(d.n/500, 10)
	made := map[string]float64{}
	for _, r := range []struct {
		name            string
		callers, single int
	}{{"1 caller", 1, 0}, {"64 callers one by one", 64, -1}, {"64 callers in groups", 64, 0}} {
		c := d.documents("customers", func(cfg *documents.Config) { cfg.Write = fronts.Config{Single: r.single} })
		n := each
		if r.callers > 1 {
			n = 4 * each
		}
		begun := time.Now()
		parallel(d.t, r.callers, func(w int) {
			for i := w; i < n; i += r.callers {
				op := d.new(i)
				op.ID = fmt.Sprintf("r%d-%d-%d", r.callers, r.single+1, i)
				if _, err := c.Write(d.t.Context(), op); err != nil {
					d.t.Error(err)
					return
				}
			}
		})
		made[r.name] = float64(n) / time.Since(begun).Seconds()
		d.t.Logf("%s: %.0f creates a second", r.name, made[r.name])
	}
	d.t.Logf("64 callers in groups against one by one: %.2f, against one caller: %.2f", made["64 callers in groups"]/made["64 callers one by one"], made["64 callers in groups"]/made["1 caller"])
	if err := streams.Purge(d.t.Context(), d.reg.JetStream(), schemas.StreamDocs, schemas.DocTopicFilter("customers"), streams.Refuse); err != nil {
		d.t.Fatal(err)
	}
}

// fill stores the documents by batches of 500.
func (d *documentsAtSize) fill() {
	begun := time.Now()
	const writers = 2 // more wait for each other longer than for an answer where NATS syncs slowly
	parallel(d.t, writers, func(w int) {
		for from := w * documents.MaxBatch; from < d.n; from += writers * documents.MaxBatch {
			var ops []documents.Op
			for i := from; i < min(from+documents.MaxBatch, d.n); i++ {
				ops = append(ops, d.new(i))
			}
			if _, err := d.c.Batch(d.t.Context(), ops...); err != nil {
				d.t.Error(err)
				return
			}
		}
	})
	d.t.Logf("by batches of 500: %.0f creates a second", float64(d.n)/time.Since(begun).Seconds())
}

// becomeCold has the cleaner leave a stub of each.
func (d *documentsAtSize) becomeCold() {
	begun, c, stubs := time.Now(), d.cleaner(), 0
	for stubs < d.n {
		done := d.clean(c, cold)
		if stubs += done.Stubbed; done.Stubbed == 0 {
			d.t.Fatalf("%d of %d became stubs: %+v", stubs, d.n, done)
		}
	}
	d.t.Logf("%d became stubs in %.1f s", stubs, time.Since(begun).Seconds())
}

// loads loads documents one after the other, and returns the median and the 99th percentile.
func (d *documentsAtSize) loads(what string) [2]time.Duration {
	var took []time.Duration
	for i := range min(d.n, 1000) {
		k := i * 7919 % d.n
		begun := time.Now()
		doc, err := again(d.c.Load)(d.t.Context(), fmt.Sprint("d-", k))
		took = append(took, time.Since(begun))
		if err != nil || string(doc.Body) != string(d.new(k).Body) {
			d.t.Fatalf("%s: document %d: %+v, %v", what, k, doc, err)
		}
	}
	slices.Sort(took)
	return [2]time.Duration{took[len(took)/2], took[len(took)*99/100]}
}

// pages reads pages of 500 from the middle, and the same rows by the best SQL that is known.
func (d *documentsAtSize) pages() {
	ctx := d.t.Context()
	begun := time.Now()
	page, err := again(d.documents("customers").List)(ctx, documents.Selection{Path: "p", Limit: 500})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Logf("the first page of a new reader: %s", time.Since(begun))
	var ours, by []time.Duration
	for range 12 {
		sel := documents.Selection{Path: "p", Limit: 500, Cursor: page.Cursor}
		last := page.Documents[len(page.Documents)-1]
		begun := time.Now()
		next, err := again(d.c.List)(ctx, sel)
		if err != nil {
			d.t.Fatal(err)
		}
		ours = append(ours, time.Since(begun))
		begun = time.Now()
		d.byHand(ctx, last)
		by = append(by, time.Since(begun))
		if next.Cursor == "" {
			break
		}
		page = next
	}
	slices.Sort(ours)
	slices.Sort(by)
	a, b := ours[len(ours)/2], by[len(by)/2]
	d.t.Logf("a page of 500 over %d documents: %s, the best SQL by hand %s: %.2f", d.n, a, b, float64(a)/float64(b))
}

// byHand reads a page as one statement does best: keys of the page first, then their bodies.
func (d *documentsAtSize) byHand(ctx context.Context, after *documents.Document) {
	settings := map[string]string{"optimize_read_in_order": "1", "max_block_size": "1024", "max_threads": "1"}
	table := d.table("customers")
	sql := fmt.Sprintf("SELECT doc_id, path, created, ts, version, `by`, body FROM %s WHERE path = 'p' AND (path, created, doc_id, version) IN ("+
		"SELECT path, created, doc_id, version FROM (SELECT path, created, doc_id, version, op FROM %s WHERE path = 'p' AND (created, doc_id) < (fromUnixTimestamp64Nano(%d, 'UTC'), '%s') "+
		"ORDER BY path DESC, created DESC, doc_id DESC, version DESC LIMIT 1 BY created, doc_id) WHERE op != 'removed' LIMIT 501) ORDER BY created DESC, doc_id DESC FORMAT JSONEachRow",
		table, table, after.Created.UnixNano(), after.ID)
	answer, err := d.db.Select(ctx, &tables.Select{SQL: sql, Settings: settings})
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = answer.Close() }()
	if n, err := io.Copy(io.Discard, answer); err != nil || n == 0 {
		d.t.Fatal(n, err)
	}
}

// restart stops NATS and starts it again, and holds that every document is there.
func (d *documentsAtSize) restart() {
	d.stop()
	begun := time.Now()
	d.run()
	js := d.registry(d.connect()).JetStream()
	info, err := streams.Info(d.t.Context(), js, schemas.StreamDocs)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Logf("NATS was back after %.1f s, DOCS has %d messages and %d MB", time.Since(begun).Seconds(), info.State.Msgs, info.State.Bytes>>20)
	if int(info.State.NumSubjects) != d.n {
		d.t.Errorf("%d documents are in DOCS after a restart, expected %d", info.State.NumSubjects, d.n)
	}
}
