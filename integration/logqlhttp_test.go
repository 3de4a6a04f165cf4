package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
)

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
	for _, step := range []time.Duration{10 * time.Minute, 7 * time.Minute, 2 * time.Hour} { // within the range, to its end
		want, have := map[int64]float64{}, map[int64]float64{}
		end := h.begin.Add(time.Hour)
		for i := range h.events {
			if ev := &h.events[i]; ev.topic == "app" && ev.Time.After(h.begin) && ev.Message != "" {
				at := h.begin.Add((ev.Time.Sub(h.begin) + step - 1) / step * step)
				if at.After(end) {
					at = end
				}
				want[at.Unix()] += float64(len(ev.Message))
			}
		}
		got, _ = ask(200, api+"index/volume_range", "query", `{topic="app"}`, "step", fmt.Sprint(step.Seconds()))
		values, _ := dig(got, "data", "result", 0, "values").([]any)
		for i := range values {
			at, _ := dig(values, i, 0).(float64)
			n, err := strconv.ParseFloat(fmt.Sprint(dig(values, i, 1)), 64)
			if err != nil {
				t.Errorf("%v: %v", values[i], err)
			}
			if n > 0 {
				have[int64(at)] = n
			}
		}
		if !maps.Equal(have, want) {
			t.Errorf("volume_range by %s: %v, want %v", step, have, want)
		}
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
		{400, api + "query_range", []string{"query", `rate({}[1m])`, "step", "0.01"}, "exceeded maximum resolution"},
		{400, api + "index/volume_range", []string{"query", `{}`, "step", "1e-10"}, "from 0.001"},
		{400, api + "query_range", []string{"query", `rate({}[1m])`, "step", "9223372036.854776"}, "from 0.001"},
		{400, api + "query", []string{"query", `{}`}, "instant query type"},
		{400, api + "query_range", []string{"query", `{}`, "direction", "up"}, "forward or backward"},
		{404, "/t/nothing" + api + "query_range", []string{"query", `{}`}, "almanac topics apply"},
	} {
		if _, text := ask(c.status, c.path, c.pairs...); !strings.Contains(text, c.says) {
			t.Errorf("%s %v says %q, want %q in it", c.path, c.pairs, text, c.says)
		}
	}
}
