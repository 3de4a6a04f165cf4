package integration

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
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

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/operations"
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

// Two tenants of one topic, by token: whatever the one asks, it is answered as if the other were not there, and what cannot be
// narrowed to its rows is refused.
func TestTwoTenants(t *testing.T) {
	t.Parallel()
	s := startTenants(t)
	n := 200
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

// asking makes random requests.
type asking struct {
	*tenants
	r        *rand.Rand
	codes    map[string]int
	compared int
}

func pick[T any](r *rand.Rand, all []T) T { return all[r.IntN(len(all))] }

// cursors keeps cursors of pages of all rows.
func (a *asking) cursors() {
	a.t.Helper()
	for _, path := range []string{"/v1/topics/app/events?limit=3", "/v1/topics/app/events?limit=3&order=asc", "/v1/topics/trail/trail?limit=1&scope=shared&open_after=1s&actor=" + otherWord} {
		code, text := a.askAs(http.MethodGet, a.base+path, a.all)
		var page struct{ Cursor string }
		if err := json.Unmarshal([]byte(text), &page); err != nil || code != http.StatusOK || page.Cursor == "" {
			a.t.Fatalf("%s: %d %s", path, code, text)
		}
		a.strange["cursor"] = append(a.strange["cursor"], page.Cursor)
	}
}

// filters are conditions that reach for the other tenant's rows.
var filters = []string{
	"attributes.tenant = 'b'", "attributes.tenant != 'a'", "NOT attributes.tenant = 'a'", "attributes.tenant = 'b' OR level = 'error'", "attributes.tenant IN ('a', 'b')", "attributes['tenant'] > 'a'",
	"exists attributes.tenant", "level = 'error'", "message contains 'z'", "message matches '(?i)^z'", "message matches '.*'", "service >= 'y'", "user_id contains 'finch' OR 1 = 1", "user_id >= 'b'",
	"plan != ''", "plan >= 'm'", "size < 20", "size >= 10 AND attributes.tenant = 'b'", "service != ''", "attributes.host contains 'z'", "level = 'error') OR (level = 'info'", "", "", "",
}

// value is one for a parameter; comparable says that it means the same in both topics.
func (a *asking) value(p *operations.Param) (text string, comparable bool) {
	at := func() string {
		return a.begin.Add(time.Duration(a.r.IntN(8000)-500) * time.Second).Format(time.RFC3339Nano)
	}
	switch p.Name {
	case "where":
		if a.r.IntN(12) == 0 {
			return "shard = '" + pick(a.r, a.strange["shard"]) + "' OR pos > 3", false
		}
		if a.r.IntN(3) > 0 {
			return pick(a.r, filters), true
		}
		return "(" + pick(a.r, filters[:21]) + ") AND NOT " + pick(a.r, filters[:10]), true
	case "cursor":
		return pick(a.r, a.strange["cursor"]), false
	case "from_pos", "Last-Event-ID":
		return pick(a.r, a.strange["from_pos"]), false
	case "from", "to", "since", "at":
		return at(), true
	case "fields":
		return pick(a.r, []string{"message", "ts,service,level", "attributes", "attributes.host,plan", "attributes.tenant", "user_id", "size", "id"}), true
	case "field":
		return pick(a.r, []string{"level", "service", "message", "plan", "size", "user_id", "attributes.host", "attributes.tenant"}), true
	case "prefix":
		return pick(a.r, []string{"", "a", "z", "attributes.", "attributes.z", "s"}), true
	case "by":
		return pick(a.r, []string{"level", "service", "plan", "host", "tenant", "unit"}), true
	case "step":
		return pick(a.r, []string{"1m", "10m", "1h", "1d", "1s"}), true
	case "zone":
		return "Europe/Vienna", true
	case "metric":
		return pick(a.r, []string{"cpu", "cpu", ownWord + "_only", "no"}), true
	case "period":
		return pick(a.r, []string{"1m", "5m", "1h"}), true
	case "scope":
		return "shared", true
	case "actor", "resource", "request":
		return pick(a.r, []string{ownWord, "roles/" + ownWord, "r-" + ownWord + "-1"}), true
	case "service":
		return "iam", true
	case "resource_type":
		return "role", true
	case "method":
		return "Update", true
	case "open_after":
		return "1s", true
	case "wait":
		return "0s", true
	}
	switch {
	case len(p.Words) > 0:
		return pick(a.r, p.Words), true
	case p.Kind == operations.Number:
		return strconv.Itoa(max(p.Least, 1) + a.r.IntN(max(1, min(p.Most, 60)-max(p.Least, 1)+1))), true
	case p.Kind == operations.Switch:
		return "true", true
	}
	return "x", true
}

// topics that an operation is most about.
func topicFor(o *operations.Operation) string {
	switch o {
	case &operations.Series, &operations.Align:
		return "points"
	case &operations.Trail:
		return "trail"
	}
	return "app"
}

// nameOf are operations by what the test counts them as.
var nameOf = map[*operations.Operation]string{
	&operations.Events: "Events", &operations.Event: "Event", &operations.Around: "Around", &operations.Count: "Count", &operations.Histogram: "Histogram", &operations.Facets: "Facets",
	&operations.Fields: "Fields", &operations.Values: "Values", &operations.Series: "Series", &operations.Align: "Align", &operations.Trail: "Trail", &operations.Topics: "Topics", &operations.Topic: "Topic",
}

// one makes a random request.
func (a *asking) one() {
	a.t.Helper()
	if a.r.IntN(5) == 0 {
		a.promQL()
		return
	}
	asked := slices.DeleteFunc(slices.Clone(operations.All), func(o *operations.Operation) bool { return o == &operations.Tail || nameOf[o] == "" && a.r.IntN(4) > 0 })
	o := pick(a.r, asked)
	comparable := o.Rows == operations.LimitedRows
	topic := topicFor(o)
	if a.r.IntN(20) == 0 {
		topic = pick(a.r, []string{"app", "points", "trail"})
	}
	q := url.Values{}
	for i := range o.Params {
		p := &o.Params[i]
		seldom := 3
		if p.Name == "cursor" {
			seldom = 8
		}
		if p.In != operations.Query || !p.Required && a.r.IntN(seldom) > 0 && (p.Name != "step" || a.r.IntN(2) == 0) {
			continue
		}
		text, same := a.value(p)
		comparable = comparable && same
		q.Set(p.Name, text)
	}
	switch o {
	case &operations.Values:
		q.Set("field", pick(a.r, []string{"level", "service", "attributes.host", "plan"}))
	case &operations.Facets:
		q.Set("fields", pick(a.r, []string{"level", "service,attributes.host", "plan,level"}))
	case &operations.Histogram: // without a range it is refused to the one, and not to the other
		q.Set("from", a.begin.Add(-time.Hour).Format(time.RFC3339))
		q.Set("to", a.begin.Add(time.Duration(1+a.r.IntN(9))*time.Hour).Format(time.RFC3339))
		if q.Has("by") {
			q.Set("by", pick(a.r, []string{"level", "service", "plan"}))
		}
	case &operations.Series, &operations.Align:
		q.Set("wait", "0s")
		if q.Has("by") { // others are not labels: who may read all is told which there are
			q.Set("by", pick(a.r, []string{"host", "tenant", "unit"}))
		}
		if o == &operations.Align {
			q.Set("to", a.begin.Add(time.Duration(1+a.r.IntN(8000))*time.Second).Format(time.RFC3339))
			q.Set("from", a.begin.Add(-time.Minute).Format(time.RFC3339))
			if a.r.IntN(2) > 0 {
				q.Set("align", pick(a.r, []string{"mean", "max", "count", "summary"}))
				q.Set("period", "5m")
				q.Set("reduce", pick(a.r, []string{"sum", "count"}))
				q.Set("by", pick(a.r, []string{"host", "tenant", "unit"}))
			}
		}
		if q.Has("where") && a.r.IntN(2) > 0 {
			q.Set("where", pick(a.r, filters[:7]))
		}
	}
	path := func(topic string) string {
		return strings.NewReplacer("{topic}", topic, "{ts}", url.PathEscape(pick(a.r, a.strange["ts"])), "{id}", pick(a.r, a.strange["id"])).Replace(o.Path)
	}
	if strings.Contains(o.Path, "{id}") {
		comparable = false
	}
	if o.Param("topic") != nil {
		q.Set("topic", topic)
	}
	body, kind := "", ""
	if o.Body != nil {
		body, kind = `{"topic":"app"}`, "application/json"
	}
	what := cmpName(o)
	a.compare(what, o.Method, path(topic), path(topic+"alone"), q, kind, body, comparable, o.Rows)
}

func cmpName(o *operations.Operation) string {
	if name := nameOf[o]; name != "" {
		return name
	}
	return o.Method + " " + o.Path
}

// promQL makes a request by Prometheus's ways to read.
func (a *asking) promQL() {
	a.t.Helper()
	queries := []string{
		`{__name__=~".+"}`, `count({__name__=~".+"})`, `count by (tenant) ({__name__=~".+"})`, `sum(cpu)`, `topk(5, cpu)`, `cpu{tenant="b"}`, `cpu{tenant!="a"}`, `absent(cpu{tenant="b"})`,
		`count_values("v", cpu)`, `group by (host) (cpu)`, `label_replace(cpu, "x", "$1", "host", "(.*)")`, `max_over_time(cpu[1h])`, `cpu or ` + ownWord + `_only`, `max({__name__=~"z.+"})`, `sum(cpu{tenant="b"}) or vector(0)`,
	}
	at := strconv.FormatInt(a.begin.Add(time.Duration(a.r.IntN(3000))*time.Second).Unix(), 10)
	q, rest := url.Values{}, pick(a.r, []string{"query", "query", "query_range", "query_range", "series", "labels", "label/host/values", "label/tenant/values", "label/__name__/values", "metadata"})
	switch rest {
	case "query":
		q = url.Values{"query": {pick(a.r, queries)}, "time": {at}}
	case "query_range":
		q = url.Values{"query": {pick(a.r, queries)}, "start": {strconv.FormatInt(a.begin.Unix(), 10)}, "end": {at}, "step": {pick(a.r, []string{"60", "300"})}}
	case "metadata":
	default:
		q = url.Values{"match[]": {pick(a.r, []string{`{__name__=~".+"}`, `cpu`, `cpu{tenant="b"}`, `{host=~"z.*"}`, `{tenant!="a"}`})}}
	}
	a.compare("PromQL", http.MethodGet, "/t/points/api/v1/"+rest, "/t/pointsalone/api/v1/"+rest, q, "", "", true, operations.LimitedRows)
}

// compare asks as the first tenant, of the shared topic, and as who may read all, of the first's own.
func (a *asking) compare(what, method, shared, alone string, q url.Values, kind, body string, comparable bool, rows operations.Rows) {
	a.t.Helper()
	ask := func(path, secret string) (int, string) {
		return a.sendAs(method, a.base+path+"?"+q.Encode(), secret, kind, body)
	}
	code, text := ask(shared, a.own)
	a.codes[what+" "+strconv.Itoa(code)]++
	request := method + " " + shared + "?" + q.Encode()
	if strings.Contains(strings.ToLower(text), otherWord) || strings.Contains(text, otherNumber) || strings.Contains(text, "3.14159265e+07") {
		a.t.Errorf("%s shows the other tenant's rows: %d %.2000s", request, code, text)
	}
	if ok := code/100 == 2; ok && rows == operations.AllRows || code == http.StatusForbidden && (rows == operations.LimitedRows || rows == operations.NoRows) || code >= http.StatusInternalServerError {
		a.t.Errorf("%s: %d %.300s", request, code, text)
	}
	if !comparable || code == http.StatusForbidden {
		return
	}
	wantCode, want := ask(alone, a.all)
	if a.compared++; code != wantCode {
		a.t.Errorf("%s: %d %.500s; alone it is %d %.500s", request, code, text, wantCode, want)
		return
	}
	if code != http.StatusOK {
		return // a text about the request
	}
	if diff := cmp.Diff(plain(a.t, want), plain(a.t, text)); diff != "" {
		a.t.Errorf("%s is answered otherwise than without the other tenant: %s", request, diff)
	}
}

// plain is an answer without what tells places of events, and how much was read.
func plain(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Errorf("not JSON: %v: %.300s", err, text)
	}
	return withoutPlaces(v)
}

func withoutPlaces(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range []string{"id", "event_id", "shards", "shard", "month", "pos", "cursor", "notice", "notes", "topic", "first_id", "last_id"} {
			delete(v, name)
		}
		for k := range maps.Keys(v) {
			v[k] = withoutPlaces(v[k])
		}
	case float64: // sums of the same values in another order
		return strings.Replace(strconv.FormatFloat(v, 'f', 6, 64), "-0.000000", "0.000000", 1)
	case []any:
		for i := range v {
			v[i] = withoutPlaces(v[i])
		}
		if len(v) > 0 {
			if one, ok := v[0].(map[string]any); ok && one["metric"] != nil { // a vector of Prometheus has no order
				slices.SortFunc(v, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
			}
		}
	}
	return v
}

// each asks once for what a random request may miss: a single event of either, its neighbours, and steps without a range.
func (a *asking) each() {
	a.t.Helper()
	code, text := a.askAs(http.MethodGet, a.base+"/v1/topics/app/events?limit=1&order=asc", a.own)
	var page struct {
		Events []struct{ Ts, ID string }
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil || code != http.StatusOK || len(page.Events) != 1 {
		a.t.Fatalf("%d %s", code, text)
	}
	own := url.PathEscape(page.Events[0].Ts) + "/" + page.Events[0].ID
	other := url.PathEscape(a.strange["ts"][0]) + "/" + a.strange["id"][0]
	none := url.PathEscape(a.strange["ts"][0]) + "/" + "0193a1b2-0000-7000-8000-000000000001"
	for _, c := range []struct {
		path string
		code int
	}{
		{"events/" + own, http.StatusOK}, {"around/" + own + "?n=200", http.StatusOK}, {"events/" + other, http.StatusNotFound}, {"around/" + other, http.StatusNotFound}, {"events/" + none, http.StatusNotFound},
		{"histogram?step=1h", http.StatusBadRequest}, {"tail?where=(", http.StatusBadRequest},
	} {
		if code, text := a.askAs(http.MethodGet, a.base+"/v1/topics/app/"+c.path, a.own); code != c.code || strings.Contains(text, otherWord) {
			a.t.Errorf("%s: %d %s", c.path, code, text)
		}
		if _, text := a.askAs(http.MethodGet, a.base+"/v1/topics/app/"+c.path, a.all); strings.HasPrefix(c.path, "around/"+own) && !strings.Contains(text, otherWord) {
			a.t.Errorf("%s: the neighbours of all rows are the first tenant's alone: %s", c.path, text)
		}
	}
	missing := func(id string) string {
		_, text := a.askAs(http.MethodGet, a.base+"/v1/topics/app/events/"+id, a.own)
		text, _, _ = strings.Cut(text, `"request_id"`)
		return strings.ReplaceAll(text, id[strings.LastIndexByte(id, '/')+1:], "")
	}
	if got, want := missing(other), missing(none); got != want {
		a.t.Errorf("an event of the other tenant is told from one that is not there: %s, %s", got, want)
	}
}
