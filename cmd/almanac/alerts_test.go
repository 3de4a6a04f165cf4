package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access/certs/certstest"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/ops/alerttest"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// observed is an Almanac in parts whose pages are scraped, and whose alerts are evaluated as Prometheus does.
type observed struct {
	*box
	whole        *box // of the test that parts live as long as
	servers      *embeddedtest.Servers
	events, rows *embeddedtest.Cable
	gateway      *daemon
	router, sink *daemon
	table, udp   string
	targets      map[string]string // by the name of a part
	hidden       string            // the gateway, while it is not scraped
	rules        map[string]alerttest.Rule
	samples      alerttest.Samples
}

// plantable are faults, each with the alert that tells of it. What follows one begins in an Almanac that is whole again.
var plantable = []struct {
	name, alert string
	// quick ones are planted in every run of the tests, the others where ALMANAC_ALERTS is set.
	quick         bool
	plant, repair func(w *observed)
	// later is how long after the repair the alert is expected to be silent, where it looks back so far.
	later time.Duration
}{
	{name: "sink stopped", alert: "NoSink", quick: true, plant: func(w *observed) { w.sink.stop(syscall.SIGTERM) }, repair: (*observed).startSink},
	{name: "dead letter", alert: "DeadLetters", quick: true, plant: func(w *observed) {
		if err := w.servers.NC().Publish("events.app."+schemas.MonthOf(time.Now().UnixNano()).String()+".0", []byte("junk")); err != nil {
			w.t.Fatal(err)
		}
	}, repair: func(w *observed) { w.ok("", "dead", "drop", "app", "--yes") }},
	{name: "missing row", alert: "EventsMissing", quick: true, plant: func(w *observed) {
		w.exec("ALTER TABLE " + w.table + " DELETE WHERE id IN (SELECT min(id) FROM " + w.table + ") SETTINGS mutations_sync = 2")
	}, repair: func(w *observed) { w.ok("", "repair") }},
	{name: "doubled row", alert: "EventsDoubled", plant: func(w *observed) {
		w.exec("INSERT INTO " + w.table + " SELECT * FROM " + w.table + " ORDER BY id LIMIT 1 SETTINGS deduplicate_insert = 'disable'")
	}, repair: func(w *observed) { w.ok("", "repair") }},
	{name: "ClickHouse gone", alert: "ServerAway", plant: func(w *observed) { w.rows.Cut(true) }, repair: func(w *observed) { w.rows.Cut(false) }},
	{name: "router gone", alert: "NoRouter", plant: func(w *observed) { _ = w.router.cmd.Process.Kill(); <-w.router.done }, repair: (*observed).startRouter},
	{name: "stream 90 % full", alert: "StreamFull", plant: (*observed).fill, repair: func(w *observed) {
		w.ok("", "streams", "apply", "EVENTS", "--bytes", "1GiB")
		w.startRouter()
	}},
	{name: "certificate near its end", alert: "CertificateExpires", plant: func(w *observed) { w.certify(10 * 24 * time.Hour) }, repair: func(w *observed) { w.certify(90 * 24 * time.Hour) }},
	{name: "rules without a sink", alert: "AlertsNotEvaluated", plant: func(w *observed) {
		w.write("rules.yaml", `groups: [{name: quiet, rules: [{alert: Quiet, topic: app, silence: 1h}]}]`)
		w.ok("", "alerts", "apply", "-f", filepath.Join(w.dir, "rules.yaml"))
		w.sink.stop(syscall.SIGTERM)
	}, repair: (*observed).startSink},
	{name: "no gateway scraped", alert: "Unwatched", quick: true, plant: (*observed).hideGateway, repair: func(w *observed) { w.targets["gateway"] = w.hidden }},
	{name: "silent input", alert: "InputSilent", plant: func(w *observed) { w.send(2000) }, repair: func(w *observed) { w.send(1) }},
	{name: "dropped event", alert: "EventsDropped", plant: (*observed).drop, repair: func(w *observed) { w.events.Cut(false); w.takes() }, later: 6 * time.Minute},
	{name: "erasure stuck", alert: "ErasureStuck", plant: func(w *observed) {
		w.sink.stop(syscall.SIGTERM)
		w.post(w.targets["gateway"]+"/v1/topics/app/events", "application/x-ndjson", `{"message":"hi","user_id":"u1"}`)
		if r := w.run("", "erase", "app", "--user", "u1", "--within", "1s", "--yes"); r.code == exitOK {
			w.t.Fatal("an erasure of what is not stored ended")
		}
	}, repair: func(w *observed) { w.startSink(); w.ok("", "erase", "resume") }},
}

// alertsEnv has every fault planted; make alerts sets it.
const alertsEnv = "ALMANAC_ALERTS"

// alertWait is how long an alert may take on a machine that is busy; make alerts prints how long each took.
const alertWait = 2 * time.Minute

// alertWithin is how soon after its fault an alert's expression is to be true; make alerts fails where one takes longer.
const alertWithin = time.Minute

// Each fault that is planted makes its alert's expression true, and it is no longer true after the repair: none needs
// Prometheus, as the rules are evaluated by its engine over scrapes of all parts.
func TestAlerts(t *testing.T) {
	t.Parallel()
	w := newObserved(t)
	all := os.Getenv(alertsEnv) != ""
	for _, f := range plantable {
		if !f.quick && !all {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			w := w.in(t)
			w.until(f.alert, false, 0)
			repaired := false
			t.Cleanup(func() { // those that follow begin in one that is whole
				w.box = w.whole // whose context has not ended
				if !repaired {
					f.repair(w)
				}
			})
			began := time.Now()
			f.plant(w)
			w.until(f.alert, true, 0)
			seen := time.Since(began)
			if all && seen > alertWithin {
				t.Errorf("%s was true %s after the fault, more than %s", f.alert, seen.Round(time.Second), alertWithin)
			}
			began = time.Now()
			f.repair(w)
			repaired = true
			w.until(f.alert, false, f.later)
			t.Logf("%-26s %-20s true after %5.1f s, false %5.1f s after the repair began", f.name, f.alert, seen.Seconds(), time.Since(began).Seconds())
		})
	}
}

func newObserved(t *testing.T) *observed {
	s := embeddedtest.Start(t)
	w := &observed{servers: s, targets: map[string]string{}, table: sql.QuotedTable(s.Database, "app")}
	var nearNATS, nearClickHouse string
	w.events, nearNATS = embeddedtest.NewCable(t, s.NATSURL)
	w.rows, nearClickHouse = embeddedtest.NewCable(t, s.HTTPDSN())
	w.box = newBox(t, "ALMANAC_NATS="+nearNATS, "ALMANAC_CLICKHOUSE="+nearClickHouse, "ALMANAC_LOG_FORMAT=json", "ALMANAC_EVENTS_BYTES=1GiB", "ALMANAC_SHARDS_BYTES=1GiB", stateApartEnv+"=200ms")
	w.whole = w.box
	w.write("almanac.yaml", "topics: [{name: app, sql_fresh: 1s}]")
	w.load()
	w.certify(90 * 24 * time.Hour)
	w.startRouter()
	w.startSink()
	w.udp = embeddedtest.FreeAddress(t)
	w.gateway = w.start("gateway", "--otlp-http", "off", "--otlp-grpc", "off", "--syslog-udp", w.udp, "--syslog-tls", "127.0.0.1:0", "--syslog-cert", filepath.Join(w.dir, "syslog.crt"), "--syslog-key", filepath.Join(w.dir, "syslog.key"))
	w.send(10)
	w.ok("", "sql", "SELECT count() FROM app")
	return w
}

// load reads the rules.
func (w *observed) load() {
	w.t.Helper()
	rules, err := alerttest.Load("../../deploy/prometheus/almanac.rules.yaml")
	if err != nil {
		w.t.Fatal(err)
	}
	w.rules = map[string]alerttest.Rule{}
	for _, r := range rules {
		w.rules[strings.TrimPrefix(r.Alert, "Almanac")] = r
	}
}

// in is the same in a test below.
func (w *observed) in(t *testing.T) *observed {
	b := *w.box
	b.t = t
	w.box = &b
	return w
}

// start starts a part at an address of its own.
func (w *observed) start(name string, args ...string) *daemon {
	w.t.Helper()
	at := embeddedtest.FreeAddress(w.t)
	d := w.whole.background(append([]string{name, "--http", at}, args...)...)
	d.says(`"message":"ready"`)
	w.targets[name] = "http://" + at
	return d
}

func (w *observed) startRouter() { w.router = w.start("router") }
func (w *observed) startSink()   { w.sink = w.start("sink", "--verify-every", "1s") }

// certify gives syslog a certificate that ends after so long.
func (w *observed) certify(within time.Duration) {
	w.t.Helper()
	cert, key := certstest.New(w.t, "ca").Issue(w.t, "syslog", time.Now().Add(within))
	certstest.Write(w.t, filepath.Join(w.dir, "syslog.crt"), cert)
	certstest.Write(w.t, filepath.Join(w.dir, "syslog.key"), key)
}

// hideGateway has the gateway no longer scraped: Prometheus marks then what it said as stale.
func (w *observed) hideGateway() {
	w.t.Helper()
	w.hidden = w.targets["gateway"]
	delete(w.targets, "gateway")
	if _, err := w.samples.Scrape("gateway", nil, time.Now()); err != nil {
		w.t.Fatal(err)
	}
}

// send sends so many events.
func (w *observed) send(n int) {
	w.t.Helper()
	w.post(w.targets["gateway"]+"/v1/topics/app/events", "text/plain", lines(n))
}

// fill stops the router, and sends until EVENTS is nine tenths of its bound, of which it gets the least.
func (w *observed) fill() {
	w.t.Helper()
	w.router.stop(syscall.SIGTERM)
	const least = 1 << 20
	random := seeded(w.t)
	line := make([]byte, 1000)
	for {
		for _, s := range decoded[query.LagReport](w.box, "lag", "-o", "json").Streams {
			if s.Stream == schemas.StreamEvents && s.Bytes > least*9/10 {
				w.ok("", "streams", "apply", s.Stream, "--bytes", fmt.Sprint(max(least, s.Bytes*10/9)))
				return
			}
		}
		var body strings.Builder
		for range 100 {
			for i := range line {
				line[i] = "0123456789abcdef"[random.IntN(16)]
			}
			body.Write(line)
			body.WriteByte('\n')
		}
		w.post(w.targets["gateway"]+"/v1/topics/app/events", "text/plain", body.String())
	}
}

// drop sends datagrams until there is no room for them: in the kernel, while the gateway stands still, and in the gateway, which is cut off from NATS then.
func (w *observed) drop() {
	w.t.Helper()
	w.scrape()                          // before
	conn, err := net.Dial("udp", w.udp) //nolint:noctx // a test
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	line := []byte("<14>1 - host app - - - " + strings.Repeat("x", 8000))
	lost := func(reason string) {
		counted := regexp.MustCompile(`(?m)^almanac_input_refused_events_total\{.*reason="` + reason + `".*\} [1-9]`)
		embeddedtest.Eventually(w.t, alertWait, func() error {
			if reason == pool.LostKernel {
				_ = w.gateway.cmd.Process.Signal(syscall.SIGSTOP)
			}
			for range 2000 { // more than either keeps
				if _, err = conn.Write(line); err != nil {
					break
				}
			}
			_ = w.gateway.cmd.Process.Signal(syscall.SIGCONT)
			if err != nil {
				return err
			}
			if page := w.page(w.targets["gateway"] + "/metrics"); !counted.Match(page) {
				return errors.New("none is lost yet for the reason " + reason)
			}
			return nil
		})
	}
	lost(pool.LostKernel)
	w.events.Cut(true)
	lost(pool.LostBuffer)
}

// takes waits until the gateway is ready and says of an event that it is stored.
func (w *observed) takes() {
	w.t.Helper()
	for method, at := range map[string]string{http.MethodGet: "/readyz", http.MethodPost: "/v1/topics/app/events?ack=stored"} {
		embeddedtest.Eventually(w.t, alertWait, func() error {
			if code, said := asked(w.t, method, w.targets["gateway"]+at, `{"message":"hi"}`); code != http.StatusOK {
				return fmt.Errorf("%s: %d %s", at, code, said)
			}
			return nil
		})
	}
}

func (w *observed) exec(statement string) {
	w.t.Helper()
	if _, err := w.servers.SQL().ExecContext(w.t.Context(), statement); err != nil {
		w.t.Fatal(err)
	}
}

// scrape reads the pages of all parts, at once.
func (w *observed) scrape() {
	w.t.Helper()
	w.scrapeInto(&w.samples, time.Now())
}

func (w *observed) scrapeInto(s *alerttest.Samples, at time.Time) {
	w.t.Helper()
	for name, url := range w.targets {
		page := w.page(url + "/metrics")
		var err error
		if page == nil {
			_, err = s.Scrape(name, nil, at)
		} else {
			_, err = s.Scrape(name, bytes.NewReader(page), at)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// until scrapes until an alert's expression is true, or is not. later is how much later than now it is evaluated, with
// the numbers of now.
func (w *observed) until(alert string, want bool, later time.Duration) {
	w.t.Helper()
	expr := w.rules[alert].Expr
	if expr == "" {
		w.t.Fatalf("there is no alert %s", alert)
	}
	embeddedtest.Eventually(w.t, alertWait, func() error {
		samples, at := &w.samples, time.Now()
		if later > 0 {
			samples = &alerttest.Samples{}
			w.scrapeInto(samples, at)
		}
		at = at.Add(later)
		w.scrapeInto(samples, at)
		found, err := samples.Eval(w.t.Context(), expr, at)
		if err != nil {
			w.t.Fatal(err)
		}
		if (len(found) > 0) != want {
			names, _ := alerttest.Names(expr)
			var now []string
			for _, name := range names {
				if v, err := samples.Eval(w.t.Context(), name, at); err == nil {
					now = append(now, v.String())
				}
			}
			return fmt.Errorf("%s is %v, with\n%s", alert, found, strings.Join(now, "\n"))
		}
		return nil
	})
}
