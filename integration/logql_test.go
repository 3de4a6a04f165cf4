package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query/logql"
	"github.com/almanac-events/almanac/schemas"
)

// TestLogQL asks LogQL over events in EVENTS, in SHARDS and stored, and compares with what its stages make of the same events in
// this process, one by one: what filters and counts of ClickHouse say must be what the stages say.
func TestLogQL(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	topic := newTopic("app", schemas.Field{Name: "endpoint", Type: schemas.TypeLowCardinality}, schemas.Field{Name: "code", Type: schemas.TypeInt64})
	other := newTopic("web")
	e := start(t, topic, other)
	for _, one := range []*schemas.Topic{&topic, &other} {
		if err := e.db.Ensure(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	h := &logqlScene{e: e, rng: rng, begin: time.Now().UTC().Truncate(time.Hour), engine: logql.New(e.following())}
	h.producers = map[string]*producer.Producer{"app": e.producer("app"), "web": e.producer("web")}
	stopRouter, stopSink := e.router(), e.sink()
	h.publish(120)
	e.stored("app", uint64(h.counts["app"]), time.Minute)
	e.stored("web", uint64(h.counts["web"]), time.Minute)
	stopSink()
	h.publish(60)
	stopRouter()
	h.publish(60)

	n := 15 // of each
	if text := os.Getenv("ALMANAC_LOGQL"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("lines", func(t *testing.T) {
		for range n {
			h.lines(t, h.pipeline())
		}
	})
	t.Run("numbers", func(t *testing.T) {
		for range n {
			h.numbers(t)
		}
	})
	t.Run("refused", func(t *testing.T) {
		for range 300 {
			h.refused(t)
		}
	})
	t.Run("over HTTP", h.overHTTP)
}

type logqlScene struct {
	e         *env
	rng       *rand.Rand
	begin     time.Time
	engine    *logql.Engine
	producers map[string]*producer.Producer
	counts    map[string]int
	events    []logqlEvent
}

type logqlEvent struct {
	topic string
	producer.Event
}

func oneOf[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// publish accepts n events of both topics. Their times are in all of an hour, some of them equal.
func (h *logqlScene) publish(n int) {
	if h.counts == nil {
		h.counts = map[string]int{}
	}
	rng := h.rng
	for range n {
		ev := producer.Event{
			Time:  h.begin.Add(time.Duration(rng.IntN(3600)) * time.Second),
			Level: oneOf(rng, "info", "warn", "error", ""), Service: oneOf(rng, "api", "web", "db"),
			Message: oneOf(rng, "started", "it's \"late\"", "GET /a 200", "two\nlines", `{"took":1.5,"who":"x"}`, "", "Ünï"),
			Attrs:   []schemas.Attr{},
		}
		for _, a := range [][]string{{"host", "h-1", "h-2"}, {"status", "200", "404", "5e2", "none"}, {"actor.login", "bot", "ann"}, {"took", "5ms", "1.5s", "12"}, {"endpoint", "/a", "/b"}} {
			if rng.IntN(3) > 0 {
				ev.Attrs = append(ev.Attrs, schemas.String(a[0], oneOf(rng, a[1:]...)))
			}
		}
		to := oneOf(rng, "app", "app", "web")
		if to == "app" {
			ev.Attrs = append(ev.Attrs, schemas.Int64("code", int64(rng.IntN(4))))
		}
		if err := h.producers[to].Publish(h.e.t.Context(), ev); err != nil {
			h.e.t.Fatal(err)
		}
		h.counts[to]++
		h.events = append(h.events, logqlEvent{to, ev})
	}
}

// pipeline is a random selector with filters; some parse or format too.
func (h *logqlScene) pipeline() string {
	rng := h.rng
	var matchers []string
	for _, m := range []string{`topic="app"`, `topic=~"a.*|web"`, `service="api"`, `service_name!=""`, `level=~"warn|err.*"`, `detected_level!="info"`, `endpoint=~"/(a|b)"`, `service!~"db|web"`} {
		if rng.IntN(5) == 0 {
			matchers = append(matchers, m)
		}
	}
	q := "{" + strings.Join(matchers, ", ") + "}"
	for range rng.IntN(4) {
		q += " " + oneOf(rng,
			`|= "a"`, `!= "late"`, `|~ "(?i)GET|start"`, `!~ "^two.lines$"`, "|= `it's`", `|~ "two.lines"`, `|= "x" or "started"`, `!= "x" or "started"`,
			`| host="h-1"`, `| host!="h-1"`, `| status>=400`, `| status=500`, `| status!=200`, `| actor_login="bot"`, `| actor_login=~"a.*" or host="h-2"`, `| code>=2`, `| code="0"`, `| code!="7" , host=~".+"`,
			`| took > 10ms`, `| nothing=""`, `| nothing!=""`, `| (status=200 or status=404) and host="h-1"`)
	}
	if rng.IntN(3) == 0 {
		q += " " + oneOf(rng, `| json`, `| json | took_extracted > 1`, `| line_format "{{.host}}: {{__line__}}"`, `| label_format where=host | where="h-2"`, `| keep level, host | host != ""`, `| drop service | service=""`, `| logfmt`)
	}
	return q
}

// of are the lines of a pipeline by its stages alone, and their labels.
func (h *logqlScene) of(t *testing.T, p *logql.Pipeline) (out []*logql.Entry) {
	t.Helper()
	for i := range h.events {
		ev := &h.events[i]
		entry := &logql.Entry{Ts: ev.Time.UnixNano(), Line: ev.Message, Stream: map[string]string{"topic": ev.topic}, Structured: map[string]string{}}
		for name, v := range map[string]string{"service": ev.Service, "level": ev.Level} {
			if v != "" {
				entry.Stream[name] = v
			}
		}
		if ev.topic == "app" {
			entry.Structured["code"] = "0"
		}
		for _, a := range ev.Attrs {
			if name := logql.LabelName(a.Key); name == "endpoint" && ev.topic == "app" {
				entry.Stream[name] = a.Text()
			} else {
				entry.Structured[name] = a.Text()
			}
		}
		keep := true
		for k := range p.Matchers {
			keep = keep && p.Matchers[k].Matches(entry.Get(p.Matchers[k].Name))
		}
		if keep && p.Apply(entry) {
			out = append(out, entry)
		}
	}
	return out
}

// shown is what a person sees of a line, without what only Almanac knows.
func shown(e *logql.Entry) string {
	labels := e.Labels()
	for _, own := range []string{"id", "shard", "month", "pos"} {
		delete(labels, own)
	}
	return fmt.Sprint(e.Ts, " ", strconv.Quote(e.Line), " ", logql.FormatLabels(labels))
}

func (h *logqlScene) lines(t *testing.T, src string) {
	t.Helper()
	q, err := logql.Parse(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	var want, got []string
	for _, entry := range h.of(t, q.Log) {
		want = append(want, shown(entry))
	}
	all, err := h.engine.Lines(t.Context(), logql.Scope{}, &logql.LinesRequest{Pipeline: q.Log, From: h.begin, To: h.begin.Add(time.Hour), Limit: logql.MaxLines, Forward: h.rng.IntN(2) == 0})
	if err != nil {
		t.Errorf("%s: %v", src, err)
		return
	}
	for _, entry := range all {
		got = append(got, shown(entry))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d lines, want %d:\n%s", src, len(got), len(want), difference(got, want))
	}
}

// difference is what is only in one of two sorted lists, the first few.
func difference(got, want []string) string {
	var b strings.Builder
	for i, pair := range [][2][]string{{got, want}, {want, got}} {
		n := 0
		for _, line := range pair[0] {
			if _, in := slices.BinarySearch(pair[1], line); !in && n < 3 {
				n++
				fmt.Fprintln(&b, []string{"too many:", "missing:"}[i], line)
			}
		}
	}
	return b.String()
}

// numbers compares an aggregation with one that is computed here, at each instant from the lines of its range.
func (h *logqlScene) numbers(t *testing.T) {
	t.Helper()
	rng := h.rng
	inner := h.pipeline()
	span := oneOf(rng, time.Minute, 90*time.Second, 10*time.Minute, time.Hour)
	fn := oneOf(rng, "count_over_time", "rate", "bytes_over_time", "bytes_rate")
	labels := oneOf(rng, nil, []string{"level"}, []string{"service_name", "host"}, []string{"topic"}, []string{"actor_login"}, []string{"code", "endpoint"})
	src := fmt.Sprintf("sum by (%s) (%s(%s [%s]))", strings.Join(labels, ","), fn, inner, span)
	q, err := logql.Parse(src)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	log, err := logql.ParseSelector(inner)
	if err != nil {
		t.Fatal(err)
	}
	lines := h.of(t, log)
	if slices.ContainsFunc(lines, func(e *logql.Entry) bool { return e.Get(logql.ErrorLabel) != "" }) {
		return
	}
	steps := logql.Steps{Start: h.begin.Add(time.Duration(rng.IntN(100)) * time.Second), End: h.begin.Add(time.Hour), Step: oneOf(rng, 0, 7*time.Second, time.Minute, 17*time.Minute)}
	if steps.Step == 0 {
		steps.End = steps.Start
	}
	got, _, err := h.engine.Numbers(t.Context(), logql.Scope{}, q.Metric, steps)
	if err != nil {
		t.Errorf("%s: %v", src, err)
		return
	}
	want := map[string]float64{}
	for at := steps.Start; !at.After(steps.End); at = at.Add(max(steps.Step, 1)) {
		for _, entry := range lines {
			if entry.Ts > at.Add(-span).UnixNano() && entry.Ts <= at.UnixNano() {
				by := map[string]string{}
				for _, name := range labels {
					if v := entry.Get(name); v != "" {
						by[name] = v
					}
				}
				n := 1.0
				if strings.HasPrefix(fn, "bytes") {
					n = float64(len(entry.Line))
				}
				if strings.HasSuffix(fn, "rate") {
					n /= span.Seconds()
				}
				want[fmt.Sprint(at.UnixNano(), logql.FormatLabels(by))] += n
			}
		}
	}
	have := map[string]float64{}
	for _, s := range got {
		for _, p := range s.Points {
			have[fmt.Sprint(p.At, logql.FormatLabels(s.Labels))] = p.Value
		}
	}
	if !maps.EqualFunc(have, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9*max(1, math.Abs(b)) }) {
		t.Errorf("%s at %v: %d values, want %d", src, steps, len(have), len(want))
	}
}

// refused puts what is not built, or not right, into a query that would be answered: it is refused, and the place is named.
func (h *logqlScene) refused(t *testing.T) {
	t.Helper()
	rng := h.rng
	src := h.pipeline() + " " + oneOf(rng, `| pattern "<a> <_>"`, `| regexp "(?P<a>.*)"`, `| unpack`, `| decolorize`, `| distinct`, `|> "<_> x"`, `!> "x"`, `|= ip("10.0.0.0/8")`, `| host = ip("::1")`, `|~ "("`, `| host =~ "["`,
		`| host > "x"`, `| line_format "{{.a"`, `| line_format "{{range .a}}{{end}}"`, `| line_format "{{unknown .a}}"`, `| logfmt --what`, `| json a="b["`, `| = 5`, `|= 5`, `| host`, `}`, `"`, `| unwrap status`)
	if rng.IntN(2) == 0 {
		src = fmt.Sprintf(oneOf(rng, `count_over_time(%s [5m])`, `sum by (host) (rate(%s [1m])) > 5`, `topk(3, bytes_rate(%s [1h]))`), src)
	} else if rng.IntN(3) == 0 {
		src = fmt.Sprintf(oneOf(rng, `absent_over_time(%s [5m])`, `rate(%s)`, `sum(%s)`, `sum_over_time(%s [5m])`, `topk(rate(%s [5m]))`, `rate(%s [5m]) / rate({} [5m])`, `stddev(rate(%s [5m]))`, `rate(%s [5m] @ 5)`, `%s [5m]`), h.pipeline())
	}
	_, err := logql.Parse(src)
	var at *logql.Error
	if !errors.As(err, &at) || at.Line == 0 || at.Column == 0 || !errors.Is(err, logql.ErrSyntax) && !errors.Is(err, logql.ErrUnsupported) {
		t.Errorf("%s: %v", src, err)
	}
}

// overHTTP asks what Grafana's data source does, and compares with what is asked of the engine.
func (h *logqlScene) overHTTP(t *testing.T) {
	base, stop := h.e.gateway()
	defer stop()
	ask := func(want int, path string, pairs ...string) (answer map[string]any, text string) {
		t.Helper()
		form := url.Values{"start": {strconv.FormatInt(h.begin.UnixNano(), 10)}, "end": {strconv.FormatInt(h.begin.Add(time.Hour).UnixNano(), 10)}}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path+"?"+form.Encode(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Loki-Response-Encoding-Flags", "categorize-labels")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != want {
			t.Errorf("%s %v: %d %s %v, want %d", path, pairs, resp.StatusCode, body, err, want)
		}
		if want == http.StatusOK {
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Errorf("%s: %v: %s", path, err, body)
			}
		}
		return answer, string(body)
	}
	dig := func(v any, path ...any) any {
		for _, p := range path {
			switch at := v.(type) {
			case map[string]any:
				v = at[p.(string)]
			case []any:
				if p.(int) >= len(at) {
					return nil
				}
				v = at[p.(int)]
			}
		}
		return v
	}
	const api = "/loki/api/v1/"
	got, _ := ask(200, api+"query_range", "query", `{topic="app"} |= "started"`, "limit", "5000")
	n := 0
	streams, _ := dig(got, "data", "result").([]any)
	for _, s := range streams {
		values, _ := dig(s, "values").([]any)
		n += len(values)
		if third := dig(values, 0, 2, "structuredMetadata", "id"); third == nil {
			t.Errorf("a line without structured metadata: %v", values[0])
		}
	}
	want := 0
	for i := range h.events {
		if h.events[i].topic == "app" && h.events[i].Message == "started" {
			want++
		}
	}
	if n != want || dig(got, "data", "resultType") != "streams" {
		t.Errorf("%d lines, want %d: %v", n, want, dig(got, "data", "resultType"))
	}
	got, _ = ask(200, "/t/app"+api+"query", "query", `sum(count_over_time({}[1h]))`, "time", strconv.FormatInt(h.begin.Add(time.Hour-1).UnixNano(), 10))
	inHour := 0
	for i := range h.events {
		if h.events[i].topic == "app" && h.events[i].Time.After(h.begin.Add(-1)) {
			inHour++
		}
	}
	if v := dig(got, "data", "result", 0, "value", 1); v != strconv.Itoa(inHour) {
		t.Errorf("the count of all is %v, want %d", v, inHour)
	}
	got, _ = ask(200, api+"query", "query", "vector(1)+vector(1)")
	if v := dig(got, "data", "result", 0, "value", 1); v != "2" {
		t.Errorf("vector(1)+vector(1) is %v", v)
	}
	got, _ = ask(200, api+"labels")
	if list := fmt.Sprint(got["data"]); list != "[endpoint level service service_name topic]" {
		t.Errorf("labels: %s", list)
	}
	got, _ = ask(200, api+"label/topic/values")
	if list := fmt.Sprint(got["data"]); list != "[app web]" {
		t.Errorf("topics: %s", list)
	}
	got, _ = ask(200, api+"label/service_name/values", "query", `{topic="web"}`)
	if list := fmt.Sprint(got["data"]); list != "[api db web]" {
		t.Errorf("services: %s", list)
	}
	got, _ = ask(200, api+"series", "match[]", `{topic="web", level="error"}`)
	if list, _ := got["data"].([]any); len(list) == 0 || len(list) > 3 || dig(list, 0, "level") != "error" {
		t.Errorf("series: %v", got)
	}
	got, _ = ask(200, api+"index/stats", "query", `{topic="web"}`)
	if got["entries"] != float64(h.counts["web"]) {
		t.Errorf("stats: %v, want %d entries", got, h.counts["web"])
	}
	got, _ = ask(200, api+"index/volume", "query", `{topic=~".+"}`, "targetLabels", "topic")
	if list, _ := dig(got, "data", "result").([]any); len(list) != 2 || dig(list, 0, "metric", "topic") != "app" {
		t.Errorf("volume: %v", got)
	}
	got, _ = ask(200, api+"index/volume_range", "query", `{topic="app"}`, "step", "600")
	if list, _ := dig(got, "data", "result").([]any); len(list) != 1 {
		t.Errorf("volume_range: %v", got)
	}
	got, _ = ask(200, api+"detected_fields", "query", `{topic="app"}`)
	found := map[any]any{}
	list, _ := got["fields"].([]any)
	for _, f := range list {
		found[dig(f, "label")] = dig(f, "type")
	}
	if found["code"] != "int" || found["actor_login"] != "string" || found["id"] == nil {
		t.Errorf("detected fields: %v", found)
	}
	got, _ = ask(200, api+"detected_field/actor_login/values", "query", `{topic="app"}`)
	if fmt.Sprint(got["values"]) != "[ann bot]" {
		t.Errorf("values: %v", got)
	}
	got, _ = ask(200, api+"detected_labels")
	if list, _ := got["detectedLabels"].([]any); len(list) != 4 {
		t.Errorf("detected labels: %v", got)
	}
	got, _ = ask(200, api+"patterns", "query", `{topic="app"}`)
	if list, ok := got["data"].([]any); !ok || len(list) != 0 {
		t.Errorf("patterns: %v", got)
	}
	for _, c := range []struct {
		status int
		path   string
		pairs  []string
		says   string
	}{
		{400, api + "query_range", []string{"query", `{a=`}, "parse error at line 1, col"},
		{400, api + "query_range", []string{"query", `{a="b"} | pattern "<_>"`}, "does not have the parser pattern"},
		{400, api + "query_range", []string{"query", `{}`, "limit", "5001"}, "max entries limit"},
		{400, api + "query_range", []string{"query", `{}`, "start", "x"}, "could not parse"},
		{400, api + "query_range", []string{"query", `{}`, "end", "1"}, "must not be before"},
		{400, api + "query_range", []string{"query", `rate({}[1m])`, "step", "0.0001"}, "exceeded maximum resolution"},
		{400, api + "query", []string{"query", `{}`}, "instant query type"},
		{400, api + "query_range", []string{"query", `{}`, "direction", "up"}, "forward or backward"},
		{404, "/t/nothing" + api + "query_range", []string{"query", `{}`}, "almanac topics apply"},
	} {
		if _, text := ask(c.status, c.path, c.pairs...); !strings.Contains(text, c.says) {
			t.Errorf("%s %v says %q, want %q in it", c.path, c.pairs, text, c.says)
		}
	}
}
