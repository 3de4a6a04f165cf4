package integration

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

var updateGrafana = flag.Bool("update-grafana", false, "write the answers to Grafana's requests again")

const grafanaAnswers = "testdata/grafana/answers.json"

// asked is a request as a client of Loki makes it.
type asked struct {
	name string
	// from says where in the client's source the form of the request was read. Headers were not read there.
	from   string
	path   string
	params []string
	header string
}

const (
	grafanaAPI      = "grafana/grafana pkg/tsdb/loki/api.go @0065cb3"
	grafanaHealth   = "grafana/grafana pkg/tsdb/loki/healthcheck.go @20b1af5"
	grafanaLabels   = "grafana/grafana public/app/plugins/datasource/loki/LanguageProvider.ts @01c4a16"
	grafanaVolume   = "grafana/grafana public/app/plugins/datasource/loki/dataProviders/logsVolumeProvider.ts @0413b78"
	drilldownData   = "grafana/logs-drilldown src/services/datasource.ts @062fdeb"
	drilldownExpr   = "grafana/logs-drilldown src/services/expressions.ts @0cbf69b, variables.ts @030613d"
	grafanaQuery    = "grafana/grafana pkg/tsdb/loki/parse_query.go @0c9ce2c"
	grafanaPanels   = "grafana/grafana devenv/dev-dashboards/datasource-loki/loki_fakedata.json @15f0841"
	composed        = "not read in a source: composed of what the others ask"
	categorizedFlag = "X-Loki-Response-Encoding-Flags: categorize-labels"
)

// grafanaRequests are what Explore, dashboards, alert rules and Logs Drilldown ask for: forms of their sources, not recorded traffic. START and END are the range in nanoseconds, FROM and TO as
// toISOString writes it, LATE the end of the range of an alert, SOON two seconds before it. Backquotes and spaces are as the query builders leave them.
var grafanaRequests = []asked{
	{"save and test", grafanaHealth, "query", []string{"query", "vector(1)+vector(1)", "direction", "backward", "time", "4000000000"}, ""},
	{"explore, lines", grafanaAPI, "query_range", []string{"query", "{service=\"api\"} |= ``", "direction", "backward", "limit", "1000", "start", "START", "end", "END", "step", "10000ms"}, categorizedFlag},
	{"explore, lines as before 10.4", grafanaAPI, "query_range", []string{"query", "{service=\"api\"} |= ``", "direction", "forward", "limit", "2", "start", "START", "end", "END", "step", "10000ms"}, ""},
	{"explore, volume", composed, "query_range", []string{"query", "sum by (level, detected_level) (count_over_time({service=\"api\"} |= `` | drop __error__ [10m]))", "direction", "backward", "start", "START", "end", "END", "step", "600000ms"}, "X-Query-Tags: Source=logvolhist"},
	{"explore, volume of early versions", grafanaVolume, "query_range", []string{"query", "sum by (level) (count_over_time({service=\"api\"} |= ``[10m]))", "direction", "backward", "start", "START", "end", "END", "step", "600000ms"}, ""},
	{"explore, labels", grafanaLabels, "labels", []string{"start", "START", "end", "END"}, ""},
	{"explore, labels of a selector", grafanaLabels, "labels", []string{"start", "START", "end", "END", "query", `{service="web"}`}, ""},
	{"explore, values", grafanaLabels, "label/service/values", []string{"start", "START", "end", "END", "query", `{level="info"}`}, ""},
	{"explore, series", grafanaLabels, "series", []string{"match[]", `{level="error"}`, "start", "START", "end", "END"}, ""},
	{"explore, detected labels", grafanaLabels, "detected_labels", []string{"start", "START", "end", "END"}, ""},
	{"explore, detected fields", grafanaLabels, "detected_fields", []string{"start", "START", "end", "END", "limit", "1000", "query", `{service="api"}`}, ""},
	{"explore, values of a field", grafanaLabels, "detected_field/host/values", []string{"start", "START", "end", "END", "limit", "1000", "query", `{service="api"}`}, ""},
	{"explore, how much", composed, "index/stats", []string{"query", `{service="api"}`, "start", "START", "end", "END"}, ""},
	{"a dashboard's rate", composed, "query_range", []string{"query", "topk(2, sum by(service) (rate({topic=\"app\"} |= `` [10m])))", "direction", "backward", "limit", "1000", "start", "START", "end", "END", "step", "1200000ms"}, ""},
	{"a dashboard's average", composed, "query_range", []string{"query", "avg(avg_over_time({service=\"api\"} | json | unwrap took | __error__=`` [1h]))", "direction", "backward", "start", "END", "end", "END", "step", "600000ms"}, ""},
	{"a dashboard's variable", grafanaPanels, "label/service/values", []string{"start", "START", "end", "END"}, ""},
	{"a dashboard's lines", grafanaPanels, "query_range", []string{"query", "{service=\"api\"} |= `took`", "direction", "backward", "limit", "60", "start", "START", "end", "END", "step", "10000ms"}, categorizedFlag},
	{"a dashboard's count", grafanaPanels, "query_range", []string{"query", `count_over_time({service="web"} [5m])`, "direction", "backward", "limit", "60", "start", "START", "end", "END", "step", "300000ms"}, ""},
	{"a dashboard's steps by themselves", grafanaQuery, "query_range", []string{"query", `sum by (level) (count_over_time({service="api"} [20m]))`, "direction", "backward", "start", "START", "end", "END", "step", "1200000ms"}, ""},
	{"a dashboard's number of the whole range", grafanaQuery, "query", []string{"query", `sum(count_over_time({service="api"} [3600s]))`, "direction", "backward", "time", "LATE"}, ""},
	{"an alert rule", grafanaQuery, "query", []string{"query", `sum by(service) (count_over_time({level="error"} [1h])) > 0`, "direction", "backward", "time", "LATE"}, ""},
	{"an alert rule from before there were instants", grafanaQuery, "query_range", []string{"query", `sum by(service) (count_over_time({level="error"} [1h]))`, "direction", "backward", "start", "SOON", "end", "END", "step", "1000ms"}, ""},
	{"drilldown, services", drilldownData, "index/volume", []string{"query", "{service_name=~`.+`}", "limit", "5000", "start", "FROM", "end", "TO"}, "X-Query-Tags: Source=grafana-lokiexplore-app"},
	{"drilldown, patterns", drilldownData, "patterns", []string{"query", "{service_name=`api`}", "start", "FROM", "end", "TO", "step", "10s"}, "X-Query-Tags: Source=grafana-lokiexplore-app"},
	{"drilldown, detected labels", drilldownData, "detected_labels", []string{"query", "{service_name=`api`}", "start", "FROM", "end", "TO"}, ""},
	{"drilldown, detected fields", drilldownData, "detected_fields", []string{"query", "{service_name=`api`}     | json  | logfmt | drop __error__, __error_details__ ", "start", "FROM", "end", "TO"}, ""},
	{"drilldown, lines", drilldownExpr, "query_range", []string{"query", "{service_name=`api`}     | json  | logfmt | drop __error__, __error_details__  ", "direction", "backward", "limit", "1000", "start", "START", "end", "END", "step", "10000ms"}, categorizedFlag},
	{"drilldown, lines of a level", drilldownExpr, "query_range", []string{"query", "{service_name=`api`} | detected_level=`error` or detected_level=`warn`    | json  | logfmt | drop __error__, __error_details__  ", "direction", "backward", "limit", "1000", "start", "START", "end", "END", "step", "10000ms"}, categorizedFlag},
	{"drilldown, levels", drilldownExpr, "query_range", []string{"query", "sum(count_over_time({service_name=`api`} | detected_level != \"\"      [10m])) by (detected_level)", "direction", "backward", "start", "START", "end", "END", "step", "600000ms"}, ""},
	{"drilldown, a label", drilldownExpr, "query_range", []string{"query", "sum(count_over_time({service_name=`api`,level!=\"\"}       [10m])) by (level)", "direction", "backward", "start", "START", "end", "END", "step", "600000ms"}, ""},
	{"drilldown, a field of metadata", drilldownExpr, "query_range", []string{"query", "sum by (host) (count_over_time({service_name=`api`}      | host!=\"\"   [10m]))", "direction", "backward", "start", "START", "end", "END", "step", "600000ms"}, ""},
	{"drilldown, a field of JSON", drilldownExpr, "query_range", []string{"query", "sum(count_over_time({service_name=`api`}     | json  | drop __error__, __error_details__ | who=`ann`  [10m])) by (who)", "direction", "backward", "start", "START", "end", "END", "step", "600000ms"}, ""},
	{"drilldown, a number", composed, "query_range", []string{"query", "avg_over_time({service_name=`api`}     | json  | logfmt | drop __error__, __error_details__ | took!=\"\" | unwrap took | __error__=\"\" [1h]) by ()", "direction", "backward", "start", "END", "end", "END", "step", "600000ms"}, ""},
}

// TestGrafanaRequests answers what Grafana's data source for Loki and Logs Drilldown ask for, as their sources make the requests. What each
// is answered is in testdata/grafana; ids, shards and positions are left out, for they differ each time.
func TestGrafanaRequests(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"), schemas.NewTopicOf(kinds.Metric, "cpu"))
	secret, id := access.NewSecret()
	file := t.TempDir() + "/tokens.yaml"
	err := keep.WriteFile(file, []access.Token{{Name: "grafana", ID: id, Digest: access.DigestOf(secret), Grants: []access.Grant{
		{Role: access.RoleRead, Topics: []string{access.Every}}, {Role: access.RoleSQL}}}})
	if err != nil {
		t.Fatal(err)
	}
	k, err := keep.Open(keep.Config{File: file})
	if err != nil {
		t.Fatal(err)
	}
	base, _ := e.gateway(func(c *gateway.Config) { c.Tokens, c.MetricsTopic = k, "cpu" })
	e.router()
	stopSink := e.sink()
	begin := time.Date(2026, 2, 1, 10, 0, 0, 0, time.UTC)
	p := e.producer("app")
	for i, ev := range []producer.Event{
		{Service: "api", Level: "info", Message: "started", Attrs: []schemas.Attr{schemas.String("host", "h-1")}},
		{Service: "api", Level: "error", Message: `{"took":1.5,"who":"ann"}`, Attrs: []schemas.Attr{schemas.String("host", "h-2")}},
		{Service: "web", Level: "info", Message: "GET /a 200"},
		{Service: "api", Level: "warn", Message: "took=2.5 who=bob", Attrs: []schemas.Attr{schemas.String("host", "h-1"), schemas.String("actor.login", "ann")}},
		{Service: "web", Level: "error", Message: "GET /b 500"},
		{Service: "api", Level: "info", Message: `{"took":0.5,"who":"ann"}`},
	} {
		if i == 4 {
			e.stored("app", 4, time.Minute)
			stopSink() // the others are on their way while they are asked for
		}
		ev.Time = begin.Add(time.Duration(5+10*i) * time.Minute)
		if err := p.Publish(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	end := begin.Add(time.Hour)
	times := strings.NewReplacer("START", fmt.Sprint(begin.UnixNano()), "END", fmt.Sprint(end.UnixNano()), "LATE", fmt.Sprint(end.UnixNano()), "SOON", fmt.Sprint(end.Add(-2*time.Second).UnixNano()),
		"FROM", begin.Format("2006-01-02T15:04:05.000Z"), "TO", end.Format("2006-01-02T15:04:05.000Z"))
	want := map[string]any{}
	if text, err := os.ReadFile(grafanaAnswers); err == nil {
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
	} else if !*updateGrafana {
		t.Fatal(err)
	}
	got := map[string]any{}
	ask := func(method, address, form string, header ...string) (int, []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(form))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range append(header, "Authorization: Bearer "+secret) {
			if name, value, ok := strings.Cut(h, ": "); ok {
				req.Header.Set(name, value)
			}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, body
	}
	for _, r := range grafanaRequests {
		form := url.Values{}
		for i := 0; i < len(r.params); i += 2 {
			form.Set(r.params[i], times.Replace(r.params[i+1]))
		}
		code, body := ask(http.MethodGet, base+"/loki/api/v1/"+r.path+"?"+form.Encode(), "", r.header)
		var answer any
		if err := json.Unmarshal(body, &answer); err != nil || code != http.StatusOK {
			t.Errorf("%s (%s): %d %s", r.name, r.from, code, body)
			continue
		}
		got[r.name] = steady(answer)
		if r.path != "patterns" && empty(answer) { // which are not built
			t.Errorf("%s (%s): nothing is in its answer %s", r.name, r.from, body)
		}
		if diff := cmp.Diff(want[r.name], got[r.name]); diff != "" && !*updateGrafana {
			t.Errorf("%s (%s): -want +got\n%s", r.name, r.from, diff)
		}
	}
	if *updateGrafana {
		var out bytes.Buffer
		out.WriteString("{\n")
		for i, r := range grafanaRequests {
			line, err := json.Marshal(got[r.name])
			if err != nil {
				t.Fatal(err)
			}
			comma := ","
			if i == len(grafanaRequests)-1 {
				comma = ""
			}
			fmt.Fprintf(&out, "  %q: %s%s\n", r.name, line, comma)
		}
		out.WriteString("}\n")
		if err := os.WriteFile(grafanaAnswers, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(name string) bool { return got[name] != nil }); len(unknown) > 0 {
		t.Errorf("answers to no request: %q", unknown)
	}
	t.Run("the data sources that are provisioned", func(t *testing.T) { provisioned(t, base, secret, ask) })
}

// empty reports whether an answer has nothing of the events: no list that has something, and no number but 0.
func empty(v any) bool {
	switch at := v.(type) {
	case map[string]any:
		for name, one := range at {
			if name != "stats" && name != "limit" && name != "encodingFlags" && !empty(one) {
				return false
			}
		}
	case []any:
		return len(at) == 0
	case float64:
		return at == 0
	}
	return true // a word says how it went, or of which type it is
}

// steady leaves out of an answer what differs from run to run.
func steady(v any) any {
	switch at := v.(type) {
	case map[string]any:
		for _, name := range []string{schemas.ColID, schemas.ColShard, schemas.ColPos, "revision", "goVersion"} {
			delete(at, name)
		}
		for name, one := range at {
			at[name] = steady(one)
		}
	case []any:
		kept := at[:0]
		for _, one := range at {
			if field, ok := one.(map[string]any); ok && slices.Contains([]any{schemas.ColID, schemas.ColShard, schemas.ColPos}, field["label"]) {
				continue
			}
			kept = append(kept, steady(one))
		}
		return kept
	}
	return v
}

// provisioned asks each data source of deploy/grafana/events.yaml what Grafana asks when one is saved, with its address and its headers.
func provisioned(t *testing.T, base, secret string, ask func(method, address, form string, header ...string) (int, []byte)) {
	text, err := os.ReadFile("../deploy/grafana/events.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, Access, URL string
			JSONData                     struct {
				MaxLines             int    `yaml:"maxLines"`
				HTTPMethod           string `yaml:"httpMethod"`
				TimeInterval         string `yaml:"timeInterval"`
				HTTPHeaderName1      string `yaml:"httpHeaderName1"`
				Protocol, Host, Path string
				Port                 int
				HTTPHeaders          []struct {
					Name   string
					Secure bool
				} `yaml:"httpHeaders"`
			} `yaml:"jsonData"`
			SecureJSONData map[string]string `yaml:"secureJsonData"`
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&file); err != nil || file.APIVersion != 1 {
		t.Fatalf("%v: %+v", err, file)
	}
	types := []string{}
	for _, s := range file.Datasources {
		types = append(types, s.Type)
		address, header, value := s.URL, s.JSONData.HTTPHeaderName1, s.SecureJSONData["httpHeaderValue1"]
		if s.Type == "grafana-clickhouse-datasource" {
			address = fmt.Sprintf("%s://%s:%d%s", s.JSONData.Protocol, s.JSONData.Host, s.JSONData.Port, s.JSONData.Path)
			header = s.JSONData.HTTPHeaders[0].Name
			value = s.SecureJSONData["secureHttpHeaders."+header]
		}
		address, ok := strings.CutPrefix(address, "http://127.0.0.1:7070")
		if !ok || header != "Authorization" || s.Access != "proxy" || s.UID == "" {
			t.Errorf("%+v", s)
		}
		address = base + address
		method, form, want := http.MethodGet, "", ""
		switch s.Type {
		case "loki":
			address, want = address+"/loki/api/v1/query?"+url.Values{"query": {"vector(1)+vector(1)"}, "time": {"4000000000"}}.Encode(), `"2"`
		case "prometheus":
			method, form, want = s.JSONData.HTTPMethod, url.Values{"query": {"1+1"}, "time": {"4"}}.Encode(), `"2"`
			address += "/api/v1/query"
		default:
			address, want = address+"/?query="+url.QueryEscape("SELECT 1+1 AS two"), "2"
		}
		kind := "Content-Type: application/x-www-form-urlencoded"
		code, body := ask(method, address, form, kind, "X-Forwarded-For: 192.0.2.7", header+": "+strings.ReplaceAll(value, "$ALMANAC_TOKEN", secret))
		if code != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %s", s.Name, code, body)
		}
	}
	slices.Sort(types)
	if !slices.Equal(types, []string{"grafana-clickhouse-datasource", "loki", "prometheus"}) {
		t.Errorf("%q", types)
	}
}
