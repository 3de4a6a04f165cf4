package families

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// TestScrape holds that every metric that is declared is in a scrape of a process with every part, as it is declared, and
// that no other of Almanac's is.
func TestScrape(t *testing.T) {
	t.Parallel()
	r := metrics.New(metrics.Config{Version: "v"})
	playParts(r)
	of := func(name string, all []metrics.Sample) {
		r.Read(metrics.Source{Name: name, Read: func(context.Context) ([]metrics.Sample, error) { return all, nil }})
	}
	of("front", ofFront([]topicStatus{{"timers", []timers.Status{{Group: "mails"}}}}))
	of("dispatcher", ofDispatcher([]dispatch.Waiting{{Topic: "timers", Group: "mails"}}, dispatch.Stats{
		Calls: []dispatch.Calls{{Result: timer.Done, GroupID: dispatch.GroupID{Topic: schemas.TopicAlertCalls, Group: "ops"}}}, Errors: map[string]uint64{timer.ErrTimeout: 1},
	}))
	of("producers", ofProducers(r.Topics(), map[string]producer.Stats{"app": {Dropped: map[string]uint64{"full": 1}}}))
	of("pool", []metrics.Sample{metrics.InputInFlight.Is(0), metrics.InputsLimit.Is(1)})
	topics, n, seconds := r.Topics(), uint64(3), 2.5
	of("servers", ofServers([]string{query.ServerNATS}, nil, time.Now()))
	of("lag", ofLag(topics, &query.LagReport{At: time.Now(), Topics: []query.Lag{{Topic: "app", Unstored: &n, UnstoredBytes: &n, UnstoredSeconds: &seconds}}}))
	of("state", ofState(topics, &query.State{
		Topics:  []query.TopicState{{Topic: "app", Shards: map[registry.Status]int{registry.Active: 1}}},
		Streams: []query.StreamUse{{Stream: schemas.StreamEvents}}, Members: map[string]int{"router": 1}, Erasures: map[string]int{"erased": 1},
	}, time.Now()))
	of("tables", append(ofTables(topics, []tables.Size{{Table: "app"}}), metrics.DiskFree.Is(1), metrics.DiskTotal.Is(2)))
	of("alerts", ofRules(topics, []alerts.TopicStatus{{Topic: "app", Rules: 1}}, time.Now()))
	r.Read(Ready(func(context.Context) bool { return true }, func() bool { return false }))
	r.Read(Certificates(map[string]func() time.Time{"tls": time.Now, "acme": func() time.Time { return time.Time{} }}, map[string]func() int{"acme": func() int { return 1 }}))
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	got, err := parser.TextToMetricFamilies(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range metrics.All() {
		f := got[m.Name]
		delete(got, m.Name)
		if f == nil {
			t.Errorf("%s is not in a scrape", m.Name)
			continue
		}
		kind, labels := strings.ToLower(f.GetType().String()), names(f.GetMetric()[0])
		if f.GetHelp() != m.Help || kind != string(m.Kind) || !slices.Equal(labels, slices.Sorted(slices.Values(m.Labels))) {
			t.Errorf("%s is a %s with %q and the labels %q", m.Name, kind, f.GetHelp(), labels)
		}
	}
	for name := range got {
		if strings.HasPrefix(name, "almanac_") {
			t.Errorf("%s is not declared", name)
		}
	}
}

// playParts has each part say once all that it says.
func playParts(r *metrics.Registry) {
	ref := schemas.ShardRef{Topic: "app"}
	rt := NewRouter(r)
	rt.Routed("app", "0", router.Batch{Messages: 1, Events: 3})
	rt.Dead("app", "corrupt", 1, nil)
	rt.Rotated(registry.Shard{Topic: "app"}, "rows")
	rt.Fault("app", "0", nil)
	k := NewSinks(r)
	k.Stored(ref, 3, 100, time.Second)
	k.Burnt(ref, 1, 0)
	k.Failed(ref, nil)
	k.Closed(ref, 3)
	k.Fault(ref, nil)
	e := NewEvaluator(r)
	e.Decided("app", 1, time.Now())
	e.Recorded("app", 1, nil)
	e.Changed(&decide.Notice{Topic: "app", To: decide.Firing})
	e.Fault("app", nil)
	p := NewProofs(r)
	p.Began(time.Hour)
	p.Ended(&verify.Report{Topics: []verify.TopicReport{{Topic: "app"}}}, time.Second, nil)
	in := NewInputs(r)
	hooks := in.Pool()
	for _, o := range pool.Outcomes {
		hooks.Events(&pool.Events{Input: pool.InputLines, Topic: "app", Token: "api", Outcome: o, Count: 3, Bytes: 9})
	}
	hooks.Refused(pool.InputLines, "malformed", 1)
	hooks.Throttled(pool.InputLines, "busy")
	hooks.Repeated(pool.InputLines)
	in.Request(pool.InputLines, 200, time.Second, 9)
	in.Refused("wrong")
	in.Limited("reads", "full")
}

func names(m *dto.Metric) (out []string) {
	for _, l := range m.GetLabel() {
		out = append(out, l.GetName())
	}
	return out
}

// A listener whose certificate is not issued yet has no end, which would be one that is long past, and is counted as missing.
func TestCertificatesThatAreMissing(t *testing.T) {
	t.Parallel()
	ends := time.Now().Add(time.Hour)
	source := Certificates(
		map[string]func() time.Time{"tls": func() time.Time { return ends }, "acme": func() time.Time { return time.Time{} }},
		map[string]func() int{"acme": func() int { return 2 }})
	got, err := source.Read(t.Context())
	want := []metrics.Sample{metrics.CertsMissing.Is(2, "acme"), metrics.CertEnds.Is(unix(ends), "tls"), metrics.CertsMissing.Is(0, "tls")}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
}
