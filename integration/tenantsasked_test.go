package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/operations"
)

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

// topicFor returns the topic that an operation is mostly about.
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
	&operations.Fields: "Fields", &operations.Values: "Values", &operations.Series: "Series", &operations.Align: "Align", &operations.Trail: "Trail", &operations.Topics: "Topics", &operations.Topic: "Topic", &operations.Search: "Search", &operations.SearchCount: "SearchCount",
}

// one makes a random request.
func (a *asking) one() {
	a.t.Helper()
	switch a.r.IntN(10) {
	case 0, 1:
		a.promQL()
		return
	case 2:
		a.logQL()
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
		if q.Has("by") { // with labels that no series has, of which an answer names those that there are
			q.Set("by", pick(a.r, []string{"host", "tenant", "unit", "level", "none"}))
		}
		if o == &operations.Align {
			q.Set("to", a.begin.Add(time.Duration(1+a.r.IntN(8000))*time.Second).Format(time.RFC3339))
			q.Set("from", a.begin.Add(-time.Minute).Format(time.RFC3339))
			if a.r.IntN(2) > 0 {
				q.Set("align", pick(a.r, []string{"mean", "max", "count", "summary"}))
				q.Set("period", "5m")
				q.Set("reduce", pick(a.r, []string{"sum", "count"}))
				q.Set("by", pick(a.r, []string{"host", "tenant", "unit", "none"}))
			}
		}
		if q.Has("where") && a.r.IntN(2) > 0 {
			q.Set("where", pick(a.r, append([]string{"attributes.none = 'x'", "NOT exists attributes.none"}, filters[:7]...)))
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

func (a *asking) logQL() {
	a.t.Helper()
	selectors := []string{`{}`, `{} | tenant="b"`, `{} | tenant!="a"`, `{level="error"}`, `{} |= "z"`, `{} |~ "(?i)^z"`, `{service=~".+"} | host=~"z.*"`, `{} | json | tenant="b" or level="info"`, `{plan=~"m|z.*"}`, `{} | size < 20`}
	numbers := []string{`sum(count_over_time(S [1h]))`, `sum by (host, plan) (rate(S [10m]))`, `topk(3, sum by (user_id) (bytes_over_time(S [1h])))`, `max_over_time(S | unwrap size [1h]) by (host)`, `sum by (tenant) (count_over_time(S [5m]))`}
	at := func(d time.Duration) string { return strconv.FormatInt(a.begin.Add(d).UnixNano(), 10) }
	s := pick(a.r, selectors)
	q := url.Values{"query": {s}, "start": {at(0)}, "end": {at(time.Duration(a.r.IntN(8000)) * time.Second)}}
	rest := pick(a.r, []string{"query_range", "query_range", "query", "labels", "label/host/values", "label/service/values", "label/plan/values", "series", "index/stats", "index/volume", "index/volume_range", "detected_fields", "detected_labels", "detected_field/tenant/values"})
	switch {
	case rest == "query" || rest == "query_range" && a.r.IntN(2) == 0:
		q.Set("query", strings.Replace(pick(a.r, numbers), "S", s, 1))
		q.Set("step", "300")
		q.Set("time", q.Get("end"))
	case rest == "series":
		q.Set("match[]", s)
	case strings.HasPrefix(rest, "index/volume"):
		q.Set("targetLabels", pick(a.r, []string{"host", "service_name,level", "tenant"}))
	}
	// Where an event stands, and the name of its topic, tell lines of the shared topic from those of the other one.
	lines := rest == "query_range" && q.Get("query") == s || strings.HasPrefix(rest, "detected_fields")
	a.compare("LogQL", http.MethodGet, "/t/app/loki/api/v1/"+rest, "/t/appalone/loki/api/v1/"+rest, q, "", "", !lines, operations.LimitedRows)
}

// compare asks as the first tenant, of the shared topic, and as who may read all, of the first's own.
func (a *asking) compare(what, method, shared, alone string, q url.Values, kind, body string, comparable bool, rows operations.Rows) {
	a.t.Helper()
	ask := func(path, secret string, q url.Values) (code int, text string) {
		for range 5 {
			if code, text = a.sendAs(method, a.base+path+"?"+q.Encode(), secret, kind, body); code != http.StatusServiceUnavailable {
				break
			}
			_ = backoff.Sleep(a.t.Context(), time.Second) // it is busy
		}
		return code, text
	}
	code, text := ask(shared, a.own, q)
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
	if q.Has("topic") {
		q.Set("topic", q.Get("topic")+"alone")
	}
	wantCode, want := ask(alone, a.all, q)
	if a.compared++; code != wantCode {
		a.t.Errorf("%s: %d %.500s; alone it is %d %.500s", request, code, text, wantCode, want)
		return
	}
	if code != http.StatusOK { // a text about the request
		if want, text = aboutRequest.ReplaceAllString(want, ""), aboutRequest.ReplaceAllString(text, ""); want != text {
			a.t.Errorf("%s: %s; alone it is %s", request, text, want)
		}
		return
	}
	if diff := cmp.Diff(plain(a.t, want), plain(a.t, text)); diff != "" {
		a.t.Errorf("%s is answered otherwise than without the other tenant: %s", request, diff)
	}
}

// aboutRequest is what refusals of the same request to two topics differ in.
var aboutRequest = regexp.MustCompile(`"request_id":"[^"]*"|alone`)

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
		for _, name := range []string{"id", "event_id", "shards", "shard", "month", "pos", "cursor", "back", "notice", "notes", "topic", "first_id", "last_id"} {
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
	for _, q := range []string{"by=none", "where=attributes.none%3D'x'"} { // the labels that are named are the first's
		from := "&from=" + a.begin.Format(time.RFC3339) + "&to=" + a.begin.Add(time.Hour).Format(time.RFC3339)
		code, text := a.askAs(http.MethodGet, a.base+"/v1/topics/points/align?metric=cpu&align=max&period=1h&reduce=sum&"+q+from, a.own)
		if code != http.StatusBadRequest || !strings.Contains(text, "its labels are "+ownWord+"_label, host, tenant") {
			a.t.Errorf("%s: %d %s", q, code, text)
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
