package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/metric"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// The words that every value of a tenant has. No request has the other's.
const (
	ownWord   = "antler"
	otherWord = "zebrafinch"
	// otherNumber is in each of the other's samples.
	otherNumber = "31415926.5"
)

// tenants is one topic of each kind that two tenants share, beside one that the first has alone: what its token reads of
// the shared one is what there is in the other.
type tenants struct {
	*env
	base string
	// own and all are tokens: of the first tenant, and without a limit.
	own, all      string
	begin         time.Time
	shared, alone *producer.Producer // of app and appalone
	sent          int                // events of each tenant in app
	// strange are values that name events of the other tenant, without its word: for parameters.
	strange map[string][]string
}

const tenantLimit = "attributes.tenant = 'a'"

// startTenants starts them. Of the events of app, some are stored, some routed and some accepted alone.
func startTenants(t *testing.T) *tenants {
	t.Helper()
	one := func(name string) schemas.Topic {
		return schemas.NewTopic(name, schemas.Field{Name: "plan", Type: schemas.TypeLowCardinality}, schemas.Field{Name: "size", Type: schemas.TypeInt64})
	}
	s := &tenants{
		env: start(t, one("app"), one("appalone"), schemas.NewTopicOf(kinds.Metric, "points"), schemas.NewTopicOf(kinds.Metric, "pointsalone"),
			schemas.NewTopicOf(kinds.Audit, "trail"), schemas.NewTopicOf(kinds.Audit, "trailalone")),
		begin: time.Now().UTC().Truncate(time.Hour).Add(-3 * time.Hour), strange: map[string][]string{},
	}
	s.shared, s.alone = s.producer("app"), s.producer("appalone")
	k := s.tokens()
	s.base, _ = s.gateway(func(c *gateway.Config) { c.Tokens, c.MetricsTopic = k, "points" })
	stopRouter, stopSink := s.router(), s.sink()
	s.samples("points", "pointsalone")
	s.trails("trail", "trailalone")
	s.events(0, 40)
	for topic, n := range map[string]uint64{"points": 80, "pointsalone": 40, "trail": 24, "trailalone": 12, "app": 80, "appalone": 40} {
		s.stored(topic, n, 30*time.Second)
	}
	s.tails()
	stopSink()
	s.events(40, 55)
	s.routed("app", uint64(2*s.sent))
	s.routed("appalone", uint64(s.sent))
	stopRouter()
	s.events(55, 70)
	return s
}

// tokens makes the tokens.
func (s *tenants) tokens() *keep.Keeper {
	s.t.Helper()
	secret := func(all *[]access.Token, name, where string) string {
		text, id := access.NewSecret()
		*all = append(*all, access.Token{Name: name, ID: id, Digest: access.DigestOf(text), Grants: []access.Grant{{Role: access.RoleRead, Topics: []string{access.Every}}}, Where: where})
		return text
	}
	var made []access.Token
	s.own, s.all = secret(&made, "own", tenantLimit), secret(&made, "all", "")
	path := filepath.Join(s.t.TempDir(), "tokens.yaml")
	if err := keep.WriteFile(path, made); err != nil {
		s.t.Fatal(err)
	}
	k, err := keep.Open(keep.Config{File: path})
	if err != nil {
		s.t.Fatal(err)
	}
	return k
}

// event is the nth of a tenant: those of the two differ in each value, and in each time.
func (s *tenants) event(n int, tenant, word string) producer.Event {
	at := s.begin.Add(time.Duration(n) * 97 * time.Second)
	if tenant == "b" {
		at = at.Add(31*time.Second + 271828*time.Nanosecond)
	}
	return producer.Event{
		Time: at, Level: []string{"info", "error", word}[n%3], Service: word + "-" + strconv.Itoa(n%4), UserID: word + "-u-" + strconv.Itoa(n%7), Message: word + " did " + strconv.Itoa(n),
		Attrs: []schemas.Attr{
			schemas.String("tenant", tenant), schemas.String("plan", word+"-plan"), schemas.Int64("size", int64(n)),
			schemas.String("host", word+"-h-"+strconv.Itoa(n%3)), schemas.String(word+"_key", word),
		},
	}
}

// events publishes those of both tenants into app, and those of the first into appalone.
func (s *tenants) events(from, to int) {
	s.t.Helper()
	for n := from; n < to; n++ {
		s.publish(func(tenant, word string) producer.Event { return s.event(n, tenant, word) })
	}
}

// publish publishes an event of each tenant into app, and that of the first into appalone.
func (s *tenants) publish(of func(tenant, word string) producer.Event) {
	own, other := of("a", ownWord), of("b", otherWord)
	for p, ev := range map[*producer.Producer][]producer.Event{s.shared: {other, own}, s.alone: {own}} {
		for i := range ev {
			if err := p.Publish(s.t.Context(), ev[i]); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	s.sent++
}

// samples publishes points of metrics.
func (s *tenants) samples(shared, alone string) {
	s.t.Helper()
	both, one := s.producer(shared), s.producer(alone)
	for n := range 40 {
		for tenant, word := range map[string]string{"a": ownWord, "b": otherWord} {
			value := float64(n)
			if tenant == "b" {
				value, _ = strconv.ParseFloat(otherNumber, 64)
			}
			m := metric.Point{
				Name: []string{"cpu", word + "_only"}[n%2], Value: value, Unit: word, Points: metric.Gauge, Time: s.begin.Add(time.Duration(n) * time.Minute),
				Labels: []schemas.Attr{schemas.String("tenant", tenant), schemas.String("host", word+"-h-"+strconv.Itoa(n%5)), schemas.String(word+"_label", word)},
			}
			ev, err := m.Event()
			if err == nil {
				err = both.Publish(s.t.Context(), ev)
			}
			if err == nil && tenant == "a" {
				err = one.Publish(s.t.Context(), ev)
			}
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// trails publishes changes of resources.
func (s *tenants) trails(shared, alone string) {
	s.t.Helper()
	both, one := s.producer(shared), s.producer(alone)
	for n := range 6 {
		for tenant, word := range map[string]string{"a": ownWord, "b": otherWord} {
			for i, state := range []string{kinds.StatePreCommitted, kinds.StateCommitted} {
				ev, err := audit.Change{
					Request: fmt.Sprintf("r-%s-%d", word, n), Scope: "shared", Service: "iam", Method: "Update", Type: "role", Resource: "roles/" + word, Actor: word,
					Before: word, After: word + "!", Time: s.begin.Add(time.Duration(10*n+i) * time.Second), Labels: []schemas.Attr{schemas.String("tenant", tenant)},
				}.Event(state)
				if err == nil {
					err = both.Publish(s.t.Context(), ev)
				}
				if err == nil && tenant == "a" {
					err = one.Publish(s.t.Context(), ev)
				}
				if err != nil {
					s.t.Fatal(err)
				}
			}
		}
	}
}

// tails reads what the first tenant's tails have, from the beginning and from behind an event of the other, and keeps
// names of the other's events.
func (s *tenants) tails() {
	s.t.Helper()
	all := s.tail(s.all, "since="+url.QueryEscape(s.begin.Add(-time.Hour).Format(time.RFC3339)), 80)
	for _, line := range all {
		if strings.Contains(line, otherWord) {
			s.keep("from_pos", line, "_pos")
			s.keep("ts", line, "ts")
			s.keep("id", line, "id")
			s.keep("shard", line, "shard")
		}
	}
	if len(s.strange["from_pos"]) == 0 {
		s.t.Fatal("the tail of all shows no event of the other tenant")
	}
	for _, from := range []string{"since=" + url.QueryEscape(s.begin.Add(-time.Hour).Format(time.RFC3339)), "from_pos=" + url.QueryEscape(s.strange["from_pos"][0])} {
		n := 0
		for _, line := range s.tail(s.own, from, 30) {
			if n++; strings.Contains(line, otherWord) {
				s.t.Errorf("the tail %s shows %s", from, line)
			}
		}
	}
	// Both publish once more while a tail of the first is open: it shows its own.
	done := make(chan []string, 1)
	go func() { done <- s.tail(s.own, "where="+url.QueryEscape("message = 'last'"), 1) }()
	eventually(s.t, time.Minute, func() error { // until the tail is there
		s.publish(func(tenant, word string) producer.Event {
			ev := s.event(3, tenant, word)
			ev.Time, ev.Message = ev.Time.Add(-time.Hour+time.Duration(s.sent)*time.Second), "last"
			return ev
		})
		select {
		case lines := <-done:
			if len(lines) != 1 || strings.Contains(lines[0], otherWord) {
				s.t.Errorf("the open tail shows %q", lines)
			}
			return nil
		default:
			return fmt.Errorf("the tail shows nothing yet")
		}
	})
	s.lokiTail()
}

// keep keeps a value of an event for parameters.
func (s *tenants) keep(name, line, key string) {
	var ev map[string]any
	if err := json.Unmarshal([]byte(line), &ev); err == nil {
		if text, ok := ev[key].(string); ok && text != "" {
			s.strange[name] = append(s.strange[name], text)
		}
	}
}

// tail reads n events of app.
func (s *tenants) tail(secret, params string, n int) (lines []string) {
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.base+"/v1/topics/app/tail?"+params, nil)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	req.Header.Set("Accept", "application/x-ndjson")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	defer func() { _ = resp.Body.Close() }()
	for in := bufio.NewReader(resp.Body); len(lines) < n; {
		line, err := in.ReadString('\n')
		if err != nil {
			s.t.Errorf("the tail ended after %d events: %v, %s", len(lines), err, line)
			return lines
		}
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// lokiTail follows app by Loki's API: what was before and what comes is the first tenant's alone.
func (s *tenants) lokiTail() {
	s.t.Helper()
	l := tailLoki(s.t, s.base, http.Header{"Authorization": {"Bearer " + s.own}}, "query", `{topic="app"}`, "limit", "5000", "start", strconv.FormatInt(s.begin.Add(-24*time.Hour).UnixNano(), 10))
	lines := l.some(30)
	s.publish(func(tenant, word string) producer.Event {
		ev := s.event(3, tenant, word)
		ev.Message = "followed"
		return ev
	})
	for !slices.ContainsFunc(lines, func(one lokiLine) bool { return one.line == "followed" }) {
		lines = append(lines, l.read()...)
	}
	for _, one := range lines {
		if text := fmt.Sprint(one); strings.Contains(text, otherWord) || !strings.Contains(text, ownWord) {
			s.t.Errorf("Loki's tail shows %s", text)
		}
	}
}

// Two tenants of one topic, by token: whatever the one asks, it is answered as if the other were not there, and what cannot be
// narrowed to its rows is refused.
func TestTwoTenants(t *testing.T) {
	t.Parallel()
	s := startTenants(t)
	n := 60
	if text := os.Getenv("ALMANAC_TENANT_REQUESTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	if text := os.Getenv("ALMANAC_TENANT_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d requests, ALMANAC_TENANT_SEED=%d", n, seed)
	a := &asking{tenants: s, r: rand.New(rand.NewPCG(seed, 1)), codes: map[string]int{}}
	a.cursors()
	for range n {
		a.one()
	}
	a.each()
	a.exports()
	t.Logf("answers by operation and code: %v", a.codes)
	for _, what := range []string{"Events 200", "Count 200", "Histogram 200", "Facets 200", "Fields 200", "Values 200", "Series 200", "Align 200", "Trail 200", "PromQL 200"} {
		if n >= 2000 && a.codes[what] == 0 {
			t.Errorf("no answer was %s", what)
		}
	}
	if a.compared < n/4 {
		t.Errorf("%d of %d answers were compared", a.compared, n)
	}
}
