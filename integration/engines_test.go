package integration

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// twoEngines is an env with a second engine, and a balancer in front.
type twoEngines struct {
	*env
	balancer      *embeddedtest.Balancer
	first, second string // host:port
	seen          faults
	said          int
	p             *producer.Producer
}

func startTwo(t *testing.T) *twoEngines {
	t.Helper()
	e := &twoEngines{env: start(t, oneLaneTopic())}
	e.first = hostOf(t, e.srv.ClickHouseHTTP)
	e.second = hostOf(t, e.srv.Twin().HTTPURL())
	e.balancer = embeddedtest.Balance(t, e.first)
	e.router()
	db := e.open(e.balancer.Host())
	e.sink(func(c *sinkConfig) {
		c.DB = db
		c.Hooks.Fault = func(ref schemas.ShardRef, err error) { e.seen.add(err); e.logf("sink %s: %v", ref, err) }
	})
	e.p = e.producer("app")
	return e
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// open opens the server at a host as a process with the registry does.
func (e *twoEngines) open(host string) *tables.DB {
	e.t.Helper()
	u, err := url.Parse(e.srv.HTTPDSNOf(access.UserOperator))
	if err != nil {
		e.t.Fatal(err)
	}
	u.Host = host
	db, err := tables.Open(u.String())
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { _ = db.Close() })
	return db
}

func (e *twoEngines) say(n int) {
	e.t.Helper()
	for range n {
		e.said++
		if err := e.p.Publish(e.t.Context(), producer.Event{UserID: "u", Message: fmt.Sprint(e.said)}); err != nil {
			e.t.Fatal(err)
		}
	}
}

// rows are those of the topic on the server at a host, 0 without a table.
func (e *twoEngines) rows(host string) (n uint64, err error) {
	err = e.open(host).Conn().QueryRow(e.t.Context(), "SELECT ifNull(sum(total_rows), 0) FROM system.tables WHERE database = $1", e.srv.Database).Scan(&n)
	return n, err
}

// has waits until the server at a host has so many rows.
func (e *twoEngines) has(host string, want int) {
	e.t.Helper()
	eventually(e.t, 30*time.Second, func() error {
		n, err := e.rows(host)
		if err == nil && n != uint64(want) {
			err = fmt.Errorf("%d rows are stored at %s, want %d", n, host, want)
		}
		return err
	})
}

// says reports whether an error of a kind was reported with a word.
func (f *faults) says(want error, word string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, err := range f.list {
		if errors.Is(err, want) && strings.Contains(err.Error(), word) {
			return nil
		}
	}
	return fmt.Errorf("none of %d faults says %q: %w", len(f.list), word, want)
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = nil
}

// refused waits until the sink said in a sentence that another server answers.
func (e *twoEngines) refused(word string) {
	e.t.Helper()
	eventually(e.t, 30*time.Second, func() error { return e.seen.says(tables.ErrOtherEngine, word) })
	e.seen.clear()
}

// proven is what verify says through an address: whether it is proven, and its sums.
func (e *twoEngines) proven(host string) (ok bool, sums verify.Totals, err error) {
	db := e.open(host)
	db.MeantFor(e.reg)
	v, err := verify.New(e.srv.NC(), e.reg, db)
	if err != nil {
		return false, sums, err
	}
	r, err := v.Run(e.t.Context(), "app")
	if err != nil {
		return false, sums, err
	}
	return r.OK(), r.Totals, nil
}

// A balancer over two servers in front of ClickHouse: nothing is stored on the one that does not
// have the cluster's rows, the sink says what stands behind the address, and verify proves
// nothing of a part of the rows. Without the balancer it goes on.
func TestBalancerOverTwoEngines(t *testing.T) {
	t.Parallel()
	e := startTwo(t)
	e.say(200)
	e.has(e.first, 200)
	e.balancer.Only(e.first, e.second)
	e.say(300)
	e.refused("load balancer")
	for range 8 {
		if ok, sums, err := e.proven(e.balancer.Host()); err == nil && ok && sums.Stored+sums.Pending != uint64(e.said) {
			t.Errorf("proven with %+v of %d events", sums, e.said)
		}
	}
	if n, err := e.rows(e.second); err != nil || n != 0 {
		t.Errorf("the second server has %d rows: %v", n, err)
	}
	e.balancer.Only(e.first)
	e.has(e.first, 500)
	eventually(t, 30*time.Second, func() error {
		ok, sums, err := e.proven(e.balancer.Host())
		if err == nil && (!ok || sums.Stored != 500) {
			err = fmt.Errorf("proven: %t, with %+v", ok, sums)
		}
		return err
	})
}

// Two empty servers behind a balancer, before the first row: none is chosen.
func TestBalancerBeforeTheFirstRow(t *testing.T) {
	t.Parallel()
	e := &twoEngines{env: start(t, oneLaneTopic())}
	e.first, e.second = hostOf(t, e.srv.ClickHouseHTTP), hostOf(t, e.srv.Twin().HTTPURL())
	e.balancer = embeddedtest.Balance(t, e.first, e.second)
	db := e.open(e.balancer.Host())
	db.MeantFor(e.reg)
	for range 3 {
		if err := db.Establish(t.Context()); !errors.Is(err, tables.ErrOtherEngine) {
			t.Fatalf("Establish: %v, want ErrOtherEngine", err)
		}
	}
	if id, _, err := e.reg.Engine(t.Context()); id != "" || err != nil {
		t.Errorf("engine %q was chosen: %v", id, err)
	}
	e.balancer.Only(e.second)
	if err := db.Establish(t.Context()); err != nil {
		t.Error(err)
	}
}

// A lost server whose place an empty one takes gets back what the streams have. When the lost
// one answers again, with its rows, it is refused until a person decides.
func TestEngineReplaced(t *testing.T) {
	t.Parallel()
	e := startTwo(t)
	e.say(200)
	e.has(e.first, 200)
	e.balancer.Only(e.second)
	e.say(100)
	e.has(e.second, 300)
	e.seen.clear()
	e.balancer.Only(e.first)
	e.say(100)
	e.refused("--adopt-engine")
	if n, err := e.rows(e.first); err != nil || n != 200 {
		t.Errorf("the first server has %d rows, want 200 as before: %v", n, err)
	}
	db := e.open(e.balancer.Host())
	db.MeantFor(e.reg)
	if _, err := db.Adopt(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.has(e.first, 400)
}

// A table of another engine, as one with replicas, takes no insert: before it is used, and when
// it was put there while the sink runs.
func TestTableOfAnotherEngine(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.router()
	var seen faults
	e.sink(func(c *sinkConfig) {
		c.Hooks.Fault = func(ref schemas.ShardRef, err error) { seen.add(err); e.logf("sink %s: %v", ref, err) }
	})
	p := e.producer("app")
	publish := func() {
		t.Helper()
		if err := p.Publish(t.Context(), producer.Event{UserID: "u", Message: "m"}); err != nil {
			t.Fatal(err)
		}
	}
	publish()
	e.stored("app", 1, 20*time.Second)
	exec := func(q string) {
		t.Helper()
		if err := e.hand.Conn().Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	var ddl string
	if err := e.hand.Conn().QueryRow(t.Context(), "SELECT create_table_query FROM system.tables WHERE database = $1 AND name = 'app'", e.srv.Database).Scan(&ddl); err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(ddl, "ENGINE = MergeTree", "ENGINE = ReplacingMergeTree", 1)
	named, foreign := regexp.MustCompile(`^CREATE TABLE \S+`), "CREATE TABLE "+e.table("mine")
	exec(named.ReplaceAllLiteralString(other, foreign))
	exec("EXCHANGE TABLES " + e.table("app") + " AND " + e.table("mine")) // a sink makes one that is not there
	eventually(t, 30*time.Second, func() error {
		publish()
		return seen.says(tables.ErrForeignTable, "ReplacingMergeTree")
	})
	topic, err := e.reg.Topic(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.db.Ensure(t.Context(), &topic); !errors.Is(err, tables.ErrForeignTable) {
		t.Errorf("Ensure: %v, want ErrForeignTable", err)
	}
}
