package lokiread

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/budget"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/query/logql"
	"github.com/almanac-events/almanac/schemas"
)

// TestRefusals holds the status of each kind of error: what the servers do not answer may be asked again, as /v1 says too.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status int
		says   string
	}{
		"its own":          {badRequest("no"), http.StatusBadRequest, "no"},
		"not LogQL":        {&logql.Error{Kind: logql.ErrSyntax, Msg: "x"}, http.StatusBadRequest, "x"},
		"slow":             {context.DeadlineExceeded, http.StatusGatewayTimeout, "narrow its range"},
		"cut off":          {context.Canceled, http.StatusServiceUnavailable, "ask again"},
		"no memory":        {budget.ErrFull, http.StatusServiceUnavailable, ""},
		"too large":        {budget.ErrLarge, http.StatusBadRequest, ""},
		"row limit":        {filter.ErrLimit, http.StatusForbidden, ""},
		"unknown topic":    {schemas.ErrUnknownTopic, http.StatusNotFound, "declare it"},
		"name of a topic":  {schemas.ErrTopicName, http.StatusBadRequest, ""},
		"request":          {schemas.ErrRequest, http.StatusBadRequest, ""},
		"a server is away": {errors.New("ClickHouse at http://ch does not answer"), http.StatusServiceUnavailable, "does not answer: send the request again; /readyz says"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			fail(w, fmt.Errorf("asked: %w", c.err))
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.status, c.says)
			}
		})
	}
}

// TestUnknownTopicOfHeader holds that who sends Loki's header for tenants learns that it names the topic.
func TestUnknownTopicOfHeader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path  string
		topic string
		err   error
		says  bool
	}{
		"by the header":   {"", "ap", schemas.ErrUnknownTopic, true},
		"by the path":     {"ap", "ap", schemas.ErrUnknownTopic, false},
		"none is named":   {"", "", schemas.ErrUnknownTopic, false},
		"another refusal": {"", "app", schemas.ErrRequest, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path+"labels", nil)
			r.SetPathValue("topic", c.path)
			got := refused(named(r, logql.Scope{Topic: c.topic}, c.err))
			if strings.Contains(got.text, HeaderTenant) != c.says || got.status != refused(c.err).status {
				t.Errorf("%d %s", got.status, got.text)
			}
		})
	}
}

// TestVolumeRows holds what becomes of series: the largest come first, those beyond an answer are said to be left out, and a row of
// a label sums the series that have it.
func TestVolumeRows(t *testing.T) {
	t.Parallel()
	series := func(labels map[string]string, values ...float64) logql.Series {
		s := logql.Series{Labels: labels}
		for i, v := range values {
			s.Points = append(s.Points, logql.Point{At: int64(i), Value: v})
		}
		return s
	}
	few := func() []logql.Series {
		return []logql.Series{
			series(map[string]string{"service": "a", "level": "info"}, 1, 2), series(map[string]string{"service": "b", "level": ""}, 10, 20), series(map[string]string{"service": "c", "level": "warn"}, 5),
		}
	}
	var many []logql.Series
	for i := range logql.MaxSeries + 3 {
		many = append(many, series(map[string]string{"service": fmt.Sprint(i)}, float64(i)))
	}
	for name, c := range map[string]struct {
		v      volumes
		series []logql.Series
		first  []logql.Series
		rows   int
		notes  int
	}{
		"by series":          {volumes{limit: 5}, few(), []logql.Series{few()[1], few()[2], few()[0]}, 3, 0},
		"as many as asked":   {volumes{limit: 1}, few(), []logql.Series{few()[1]}, 1, 0},
		"by label":           {volumes{limit: 5, byLabel: true}, few(), []logql.Series{series(map[string]string{"service": ""}, 16, 22), series(map[string]string{"level": ""}, 6, 2)}, 2, 0},
		"more than it gives": {volumes{limit: maxVolumes}, many, []logql.Series{many[len(many)-1]}, logql.MaxSeries, 1},
		"fewer were asked":   {volumes{limit: logql.MaxSeries}, many, []logql.Series{many[len(many)-1]}, logql.MaxSeries, 0},
		"labels of many":     {volumes{limit: maxVolumes, byLabel: true}, many, nil, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := &logql.Answer{Series: append([]logql.Series{}, c.series...)}
			c.v.rows(got)
			if len(got.Series) != c.rows || len(got.Notes) != c.notes || !reflect.DeepEqual(got.Series[:len(c.first)], c.first) && len(c.first) > 0 {
				t.Errorf("%d rows, notes %q, first %v, want %d, %d, %v", len(got.Series), got.Notes, got.Series[:min(len(got.Series), 3)], c.rows, c.notes, c.first)
			}
		})
	}
}

// TestInterval holds that lines are not answered whole where only some were asked for.
func TestInterval(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path+"query_range?"+url.Values{"query": {"{}"}, "interval": {"5"}}.Encode(), nil)
	if _, err := (&API{}).queryRange(r, logql.Scope{}); err == nil || refused(err).status != http.StatusBadRequest || !strings.Contains(err.Error(), "interval is not built") {
		t.Errorf("%v", err)
	}
}

// TestVolumeRequests holds by what a volume is summed.
func TestVolumeRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		form    url.Values
		group   logql.Grouping
		byLabel bool
		refused bool
	}{
		"labels of the selector": {form: url.Values{"query": {`{service="a", level=~".+"}`}}, group: logql.Grouping{Labels: []string{"service", "level"}}},
		"all":                    {form: url.Values{}, group: logql.Grouping{Without: true}},
		"target labels":          {form: url.Values{"query": {`{service="a"}`}, "targetLabels": {"level,x"}, "aggregateBy": {"series"}}, group: logql.Grouping{Labels: []string{"level", "x"}}},
		"a row a label":          {form: url.Values{"query": {`{service="a"}`}, "aggregateBy": {"labels"}}, group: logql.Grouping{Labels: []string{"service"}}, byLabel: true},
		"another aggregation":    {form: url.Values{"aggregateBy": {"lines"}}, refused: true},
		"too many":               {form: url.Values{"limit": {"5001"}}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Path+"index/volume?"+c.form.Encode(), nil)
			v, err := volumesOf(r)
			if c.refused {
				if err == nil || refused(err).status != http.StatusBadRequest {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sum, ok := v.over(time.Minute).(*logql.VectorAggregation)
			if !ok || !reflect.DeepEqual(*sum.Group, c.group) || v.byLabel != c.byLabel {
				t.Errorf("%+v", v)
			}
		})
	}
}

// TestDetectedTypes holds the types of fields, by Loki's names.
func TestDetectedTypes(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"5": "int", "-5": "int", "5.5": "float", "1e9": "float", "true": "boolean", "5ms": "duration", "1h30m": "duration",
		"5MB": "bytes", "10KiB": "bytes", "1.5gb": "bytes", "7b": "bytes", "": "string", "x": "string", "MB": "string", "5 apples": "string", "5MB5": "string",
	}
	got := map[string]string{}
	for v := range want {
		got[v] = typeOf(v)
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	by := map[string]*detected{}
	for _, v := range []string{"5MB", "10KiB"} {
		see(by, "size", v, "")
	}
	see(by, "mixed", "5MB", "")
	see(by, "mixed", "5", "")
	if by["size"].Type != "bytes" || by["mixed"].Type != "string" {
		t.Errorf("%+v, %+v", by["size"], by["mixed"])
	}
}
