package prometheus

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"

	"github.com/almanac-events/almanac/query/series"
	"github.com/almanac-events/almanac/schemas"
)

var noon = time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)

// A counter with a reset, of which every sample is stored twice and one was corrected, over the
// end of a month, before and after rollups listed its series.
func TestQuery(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	begin := time.Date(2026, 1, 31, 23, 58, 0, 0, time.UTC)
	a := labels.FromStrings("__name__", "http_requests_total", "job", "web", "service", "api", "unit", "x")
	b := labels.FromStrings("__name__", "http_requests_total", "job", "db", "user_id", "u-7")
	add := func() {
		for i, v := range []float64{0, 30, 60, 0, 30, 60} {
			at := begin.Add(time.Duration(i) * 30 * time.Second).UnixMilli()
			r.insert(sample{a, "", at, v}, sample{b, "", at, 2 * v})
		}
	}
	r.insert(sample{a, "", begin.UnixMilli(), 1e9}) // corrected by what comes later
	add()
	check := func(when string) {
		t.Helper()
		end := begin.Add(150 * time.Second)
		for expr, want := range map[string]string{
			`http_requests_total{job="web"}`:                     `{__name__="http_requests_total", job="web", service="api", unit="x"} => 60 @[1769904030000]`,
			`http_requests_total{user_id="u-7"}`:                 `{__name__="http_requests_total", job="db", user_id="u-7"} => 120 @[1769904030000]`,
			`sum(http_requests_total)`:                           `{} => 180 @[1769904030000]`,
			`resets(http_requests_total{job="web"}[3m])`:         `{job="web", service="api", unit="x"} => 1 @[1769904030000]`,
			`count_over_time(http_requests_total[3m])`:           "{job=\"db\", user_id=\"u-7\"} => 6 @[1769904030000]\n{job=\"web\", service=\"api\", unit=\"x\"} => 6 @[1769904030000]",
			`max_over_time(http_requests_total{job=~"w.*"}[1h])`: `{job="web", service="api", unit="x"} => 60 @[1769904030000]`,
			`increase(http_requests_total{job!="db"}[150s])`:     `{job="web", service="api", unit="x"} => 112.5 @[1769904030000]`,
			`absent(nothing)`:                                    `{} => 1 @[1769904030000]`,
			`count({__name__=~"http_.+", job!~"d.*"})`:           `{} => 1 @[1769904030000]`,
		} {
			lines := strings.Split(r.exec(instant(expr, end)), "\n")
			if len(lines) == 2 && lines[0] > lines[1] {
				lines[0], lines[1] = lines[1], lines[0]
			}
			if got := strings.Join(lines, "\n"); got != want {
				t.Errorf("%s: %s is\n%s, want\n%s", when, expr, got, want)
			}
		}
	}
	check("stored")
	add()
	check("stored twice")
	r.Round()
	check("listed")
	q := Query{Expr: `http_requests_total{job="web"}`, Start: begin, End: begin.Add(time.Minute), Step: 30 * time.Second}
	if got, want := r.exec(q), "{__name__=\"http_requests_total\", job=\"web\", service=\"api\", unit=\"x\"} =>\n0 @[1769903880000]\n30 @[1769903910000]\n60 @[1769903940000]"; got != want {
		t.Errorf("range: %s, want %s", got, want)
	}
	querier, err := r.store.Topic("metrics").Querier(begin.UnixMilli(), begin.Add(time.Hour).UnixMilli())
	if err != nil {
		t.Fatal(err)
	}
	names, _, err := querier.LabelNames(t.Context(), nil)
	if got := strings.Join(names, " "); err != nil || got != "__name__ job service unit user_id" {
		t.Errorf("%s, %v", got, err)
	}
	values, _, err := querier.LabelValues(t.Context(), "job", nil, labels.MustNewMatcher(labels.MatchEqual, "service", "api"))
	if got := strings.Join(values, " "); err != nil || got != "web" {
		t.Errorf("%s, %v", got, err)
	}
}

// What is not a number is what its sender wrote; a marker ends a series. Series that differ by
// their unit are one.
func TestOddSamples(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	l := labels.FromStrings("__name__", "m", "a", "b")
	at := func(s int) int64 { return noon.Add(time.Duration(s) * time.Second).UnixMilli() }
	r.insert(sample{l, "", at(0), 1}, sample{l, "", at(10), math.NaN()}, sample{l, "", at(20), math.Inf(-1)}, sample{l, "s", at(30), 7}, sample{l, "s", at(40), math.Float64frombits(value.StaleNaN)}, sample{l, "", at(50), math.Inf(1)})
	for second, want := range map[int]string{
		5: `{__name__="m", a="b"} => 1`, 15: `{__name__="m", a="b"} => NaN`, 25: `{__name__="m", a="b"} => -Inf`, 35: `{__name__="m", a="b"} => 7`, 45: ``, 55: `{__name__="m", a="b"} => +Inf`, 349: `{__name__="m", a="b"} => +Inf`, 351: ``,
	} {
		got, _, _ := strings.Cut(r.exec(instant("m", noon.Add(time.Duration(second)*time.Second))), " @")
		if got != want {
			t.Errorf("after %d s: %s, want %s", second, got, want)
		}
	}
	if got := r.exec(instant("count_over_time(m[1m])", noon.Add(55*time.Second))); !strings.Contains(got, "=> 5 @") {
		t.Errorf("count: %s", got)
	}
}

// What is refused is named, and gives its room back.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var all []sample
	for i := range 9000 {
		all = append(all, sample{labels.FromStrings("__name__", "m", "n", string(rune('a'+i%3))), "", noon.UnixMilli() + int64(i), 1})
	}
	r.insert(all...)
	run := func(topic, expr string) (err error) {
		q := instant(expr, noon.Add(time.Minute))
		q.Topic = topic
		failed := r.store.Exec(t.Context(), &q, func(result *promql.Result, _ string) error {
			err = result.Err
			return nil
		})
		return errors.Join(failed, err)
	}
	r.store.limit = 2 * chunk
	for range 3 {
		if err := run("metrics", "count_over_time(m[5m])"); !errors.Is(err, ErrTooMany) {
			t.Errorf("too many points: %v", err)
		}
		if err := run("metrics", `count_over_time(m{n="a"}[5m])`); err != nil {
			t.Errorf("few points: %v", err)
		}
	}
	if n := r.store.held.Load(); n != 0 {
		t.Errorf("%d points are held after all queries", n)
	}
	var parse *ParseError
	if err := run("metrics", "sum("); !errors.As(err, &parse) {
		t.Errorf("%v", err)
	}
	if err := run("nothing", "m"); !errors.Is(err, schemas.ErrUnknownTopic) {
		t.Errorf("%v", err)
	}
	if _, err := r.store.series.All(t.Context(), series.ListRequest{Topic: "metrics", Limit: -1}); !errors.Is(err, schemas.ErrRequest) {
		t.Errorf("%v", err)
	}
}

func TestReleaseOf(t *testing.T) {
	t.Parallel()
	for module, want := range map[string]string{"v0.316.0": "3.16.0", "v0.305.2": "3.5.2", "v0.300.0": "3.0.0", "(devel)": "(devel)"} {
		if got := releaseOf(module); got != want {
			t.Errorf("%s: %s, want %s", module, got, want)
		}
	}
}
