package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
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
	t.Run("series", func(t *testing.T) {
		compared, least := 0, max(1, n/5)
		for range 10 * n { // a seed may have many that select nothing
			if h.reduced(t) {
				compared++
			}
			if t.Failed() || compared == n {
				break
			}
		}
		if compared < least && !t.Failed() {
			t.Errorf("%d aggregations had something to compare, want %d", compared, least)
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
		if !keep {
			continue
		}
		if keep, err := p.Apply(context.Background(), entry); err != nil {
			panic(err) // the context does not end
		} else if keep {
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
	all, _, err := h.engine.Lines(t.Context(), logql.Scope{}, &logql.LinesRequest{Pipeline: q.Log, From: h.begin, To: h.begin.Add(time.Hour), Limit: logql.MaxLines, Forward: h.rng.IntN(2) == 0})
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
	// One of the three is counted by labels alone, the others by series, of which no label may be lost.
	src := fmt.Sprintf(oneOf(rng, "sum by (%s) (%s(%s [%s]))", "sum by (%s) (%s(%s [%s]) * 1)", "sum by (%s) (topk(100000, %s(%s [%s])))"), strings.Join(labels, ","), fn, inner, span)
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
	got, err := h.engine.Numbers(t.Context(), logql.Scope{}, q.Metric, steps)
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
	for _, s := range got.Series {
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
		`| host > "x"`, `| line_format "{{.a"`, `| line_format "{{range .a}}{{end}}"`, `| line_format "{{unknown .a}}"`, `| logfmt --what`, `| json a="b["`, `| = 5`, `|= 5`, `| host`, `}`, `"`)
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
