package promapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/query/once/oncetest"
	"github.com/almanac-events/almanac/query/prometheus"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// Answers and errors have Prometheus's shape, whatever way a request comes.
func TestAPI(t *testing.T) {
	t.Parallel()
	rig := oncetest.New(t, schemas.Topic{Name: "metrics", Kind: kinds.Metric})
	ref := schemas.ShardRef{Topic: "metrics", Month: schemas.MonthOf(time.Unix(1770000000, 0).UnixNano()), ID: 7}
	rig.Exec("INSERT INTO " + sql.QuotedTable(rig.DB.Database, "metrics") + ` (ts, id, type, attributes, value, points, count, buckets, month, shard, pos) VALUES
 (toDateTime64(1770000000, 9), generateUUIDv7(), 'up', map('job', 'a'), 1, 'gauge', 0, '', 202602, 7, 1), (toDateTime64(1770000000, 9), generateUUIDv7(), 'up', map('job', 'b'), 0, 'gauge', 0, '', 202602, 7, 1),
 (toDateTime64(1770000000, 9), generateUUIDv7(), 'hits', map(), 5, 'cumulative', 0, '', 202602, 7, 1), (toDateTime64(1770000000, 9), generateUUIDv7(), 'took', map(), 0, '', 3, '{}', 202602, 7, 1)`)
	rig.Pos[ref] = 1
	mux := http.NewServeMux()
	New(Config{Anyone: true, Store: prometheus.New(rig.Query), Topic: "metrics", Version: "test"}).Add(mux)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	form := func(pairs ...string) url.Values {
		v := url.Values{}
		for i := 0; i < len(pairs); i += 2 {
			v.Add(pairs[i], pairs[i+1])
		}
		return v
	}
	for _, c := range []struct {
		path   string
		form   url.Values
		status int
		want   string
	}{
		{"query", form("query", "sort(up)", "time", "1770000000"), 200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"up","job":"b"},"value":[1770000000,"0"]},{"metric":{"__name__":"up","job":"a"},"value":[1770000000,"1"]}]}}`},
		{"query", form("query", "1+1", "time", "2026-02-02T02:40:00Z"), 200, `{"status":"success","data":{"resultType":"scalar","result":[1770000000,"2"]}}`},
		{"query", form("query", `hits[1m]`, "time", "1770000000"), 200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"hits"},"values":[[1770000000,"5"]]}]}}`},
		{"query", form("query", "took", "time", "1770000000"), 200, `{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["PromQL warning: 1 points that stand for distributions are not samples: almanac align reads them"]}`},
		{"query", form("query", "hits", "time", "1770000000", "lookback_delta", "1s"), 200, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"hits"},"value":[1770000000,"5"]}]}}`},
		{"query_range", form("query", `up{job="a"}`, "start", "1770000000", "end", "1770000060", "step", "60"), 200, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"up","job":"a"},"values":[[1770000000,"1"],[1770000060,"1"]]}]}}`},
		{"series", form("match[]", "up"), 200, `{"status":"success","data":[{"__name__":"up","job":"a"},{"__name__":"up","job":"b"}]}`},
		{"series", form("match[]", "up", "limit", "1"), 200, `{"status":"success","data":[{"__name__":"up","job":"a"}],"warnings":["results truncated due to limit"]}`},
		{"series", form("match[]", "up", "end", "1769999999"), 200, `{"status":"success","data":[]}`},
		{"labels", form(), 200, `{"status":"success","data":["__name__","job"]}`},
		{"labels", form("match[]", "hits"), 200, `{"status":"success","data":["__name__"]}`},
		{"label/job/values", form(), 200, `{"status":"success","data":["a","b"]}`},
		{"label/__name__/values", form("start", "1770000000"), 200, `{"status":"success","data":["hits","took","up"]}`},
		{"metadata", form("metric", "up"), 200, `{"status":"success","data":{"up":[{"type":"gauge","help":"","unit":""}]}}`},
		{"query", form("query", "sum("), 400, `{"error":"invalid parameter`},
		{"query", form("query", "up", "time", "noon"), 400, `{"error":"invalid parameter \"time\": cannot parse \"noon\" to a valid timestamp`},
		{"query", form("query", "up", "timeout", "x"), 400, `{"error":"invalid parameter \"timeout\"`},
		{"query", form("query", `up + on() up`, "time", "1770000000"), 422, `{"error":`},
		{"query_range", form("query", "up", "start", "1770000000", "end", "1769999999", "step", "1"), 400, `{"error":"invalid parameter \"end\"`},
		{"query_range", form("query", "up", "start", "0", "end", "1769999999", "step", "1"), 400, `{"error":"exceeded maximum resolution`},
		{"query_range", form("query", "up", "start", "0", "end", "1", "step", "0"), 400, `{"error":"invalid parameter \"step\"`},
		{"series", form(), 400, `{"error":"no match[] parameter provided"`},
		{"series", form("match[]", "{"), 400, `{"error":"invalid parameter \"match[]\"`},
		{"labels", form("limit", "-1"), 400, `{"error":"invalid parameter \"limit\"`},
		{"label/%FF/values", form(), 400, `{"error":"invalid label name`},
	} {
		for _, prefix := range []string{"/api/v1/", "/t/metrics/api/v1/"} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				if method == http.MethodPost && (c.path == "metadata" || strings.HasPrefix(c.path, "label/")) {
					continue
				}
				status, text := send(t, method, s.URL+prefix+c.path, c.form)
				if status != c.status || !strings.HasPrefix(text, c.want) || !json.Valid([]byte(text)) {
					t.Errorf("%s %s %v: %d %s, want %d %s", method, prefix+c.path, c.form, status, text, c.status, c.want)
				}
			}
		}
	}
	if status, text := send(t, http.MethodGet, s.URL+"/t/nothing/api/v1/query", form("query", "up")); status != 404 || !strings.Contains(text, "almanac topics apply NAME --kind metric") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := send(t, http.MethodGet, s.URL+"/api/v1/status/buildinfo", nil); status != 200 || !strings.Contains(text, `"buildUser":"almanac test"`) {
		t.Errorf("%d %s", status, text)
	}
}

func send(t *testing.T, method, to string, form url.Values) (int, string) {
	t.Helper()
	var r *http.Request
	var err error
	if method == http.MethodGet {
		r, err = http.NewRequestWithContext(t.Context(), method, to+"?"+form.Encode(), nil)
	} else if r, err = http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(form.Encode())); err == nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, strings.TrimSpace(string(body))
}

func TestParams(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"1770000000.123": time.UnixMilli(1770000000123), "0": time.Unix(0, 0), "-1.5": time.UnixMilli(-1500), "2026-02-02T02:40:00.5+01:00": time.Date(2026, 2, 2, 1, 40, 0, 5e8, time.UTC),
	} {
		if got, err := parseTime(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for text, want := range map[string]time.Duration{"15": 15 * time.Second, "0.5": time.Second / 2, "1h30m": 90 * time.Minute, "5m": 5 * time.Minute} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "NaN", "Inf", "1e30", "x", "5 m"} {
		if _, err := parseTime(text); err == nil {
			t.Errorf("time %q was taken", text)
		}
		if _, err := parseDuration(text); err == nil {
			t.Errorf("duration %q was taken", text)
		}
	}
}
