package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/cleaner"
	"github.com/almanac-events/almanac/schemas"
)

// cleanerMinAge is how long records stay at least where cleaners are killed: longer than a writer waits for an answer before it
// looks for its own record.
const cleanerMinAge = 6 * time.Second

// runCleaner does one round after the other until ctx ends.
func runCleaner(ctx context.Context, cfg cleaner.Config) error {
	c := cleaner.New(cfg)
	pause := time.NewTicker(50 * time.Millisecond)
	defer pause.Stop()
	for {
		if _, err := c.Round(ctx, time.Now()); err != nil && ctx.Err() == nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-pause.C:
		}
	}
}

// acks are what writers were told: the body of each version.
type acks struct {
	mu   sync.Mutex
	told map[string]map[uint64]string
}

func (a *acks) note(t testing.TB, id string, version uint64, body string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.told[id] == nil {
		a.told[id] = map[uint64]string{}
	}
	if was, twice := a.told[id][version]; twice {
		t.Errorf("%s: version %d was acknowledged twice: %s and %s", id, version, was, body)
	}
	a.told[id][version] = body
}

// While eight writers change documents, routers, sinks and two cleaners at once are killed,
// or kill themselves between two steps. Each document's versions in ClickHouse are 1 to n
// without a gap, none twice, n as acknowledged, each with the body that was; the
// last is what a load returns; verify proves it.
func TestDocumentsUnderKills(t *testing.T) {
	t.Parallel()
	const writers, docs = 8, 400
	kills := sized("ALMANAC_DOCUMENTS_KILLS", 3)
	each := 100 * kills // changes of a writer before it waits for the kills
	topic := docsTopic()
	topic.Documents.HotFor = time.Second
	e := start(t, topic)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)

	known := acks{told: map[string]map[uint64]string{}}
	e.underKills(seed, kills, func(killed <-chan struct{}) { // writers go on while parts are killed
		parallel(t, writers, func(n int) {
			c := e.documents("customers")
			rnd := rand.New(rand.NewPCG(seed, uint64(n)))
			for i := 0; ; i++ {
				if i >= each {
					select {
					case <-killed:
						return
					case <-time.After(10 * time.Millisecond):
					}
				}
				id, body := fmt.Sprint("d-", rnd.IntN(docs)), fmt.Sprintf(`{"w":%d,"i":%d}`, n, i)
				d, err := c.Put(t.Context(), documents.Draft{ID: id, Path: "p", Body: []byte(body)})
				switch {
				case errors.Is(err, documents.ErrBusy), errors.Is(err, documents.ErrFull):
				case err != nil:
					t.Error(err)
					return
				default:
					known.note(t, id, d.Version, body)
				}
			}
		})
	})
	var total uint64
	for _, versions := range known.told {
		total += uint64(len(versions))
	}
	e.stored("customers", total, time.Minute)
	e.verified("customers")
	wrong := 0
	rows, err := e.hand.Conn().Query(t.Context(), fmt.Sprintf("SELECT doc_id, version, body FROM %s ORDER BY doc_id, version", e.table("customers")))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id, body string
		var version int64
		if err := rows.Scan(&id, &version, &body); err != nil {
			t.Fatal(err)
		}
		if known.told[id][uint64(version)] != body {
			wrong++
		}
	}
	if err := rows.Err(); err != nil || wrong > 0 {
		t.Errorf("%d rows are not what was acknowledged, %v", wrong, err)
	}
	if n := e.count("SELECT count() FROM (SELECT doc_id, max(version) AS m, count() AS n, uniqExact(version) AS u FROM %s GROUP BY doc_id HAVING n != m OR u != m)", e.table("customers")); n != 0 {
		t.Errorf("%d documents have gaps or doubles among their versions", n)
	}
	eventually(t, time.Minute, func() error {
		if n := len(e.messages(schemas.StreamDocs, "docs.customers.>")); n != len(known.told) {
			return fmt.Errorf("%d messages in DOCS, expected a stub for each of %d documents", n, len(known.told))
		}
		return nil
	})
	c := e.documents("customers")
	for id, versions := range known.told {
		d, err := again(c.Load)(t.Context(), id)
		if err != nil || d.Version != uint64(len(versions)) || string(d.Body) != versions[d.Version] {
			t.Errorf("%s: %+v, %v; expected version %d", id, d, err, len(versions))
		}
	}
}

// underKills calls work while a router, a sink and two cleaners are killed, or kill themselves between
// two steps: each role kills times, and killed is closed then. After work they run without faults.
func (e *env) underKills(seed uint64, kills int, work func(killed <-chan struct{})) {
	rnd := rand.New(rand.NewPCG(seed, 9))
	fresh := func(role string) *process {
		points := crashPoints[role]
		return e.process(part{Role: role, CrashAt: points[rnd.IntN(len(points))], CrashHit: 2 + rnd.IntN(12)})
	}
	running := []*process{fresh("router"), fresh("sink"), fresh("cleaner"), fresh("cleaner")}
	killed, worked := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(worked)
		work(killed)
	}()
	deaths, done := map[string]int{}, false
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for next := 0; !done; {
		<-tick.C
		next++
		done = true
		for i, c := range running {
			select {
			case <-c.gone:
				c.killed()
			default:
				if next%len(running) != i || next < 20 { // first let some records become stubs
					done = done && deaths[c.Role] >= kills
					continue
				}
				c.kill()
			}
			deaths[c.Role]++
			running[i] = fresh(c.Role)
			done = done && deaths[c.Role] >= kills
		}
	}
	close(killed)
	<-worked
	e.t.Logf("deaths %v", deaths)
	for i, c := range running {
		c.kill()
		running[i] = e.process(part{Role: c.Role})
	}
}
