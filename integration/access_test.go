package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// holder is who makes requests: by a token, or without one.
type holder struct {
	name   string
	secret string
	who    *access.Principal
}

// holders makes a token of each role for the topics app and points, or everywhere, and a keeper that knows them.
func holders(t *testing.T) (*keep.Keeper, []holder, string) {
	t.Helper()
	out := []holder{{name: "no token", who: access.Anonymous(true)}}
	var tokens []access.Token
	for _, r := range access.Rights {
		secret, id := access.NewSecret()
		g := access.Grant{Role: r.Role}
		if !r.Everywhere {
			g.Topics = []string{"app", "points"}
		}
		tokens = append(tokens, access.Token{Name: string(r.Role), ID: id, Digest: access.DigestOf(secret), Grants: []access.Grant{g}})
		out = append(out, holder{string(r.Role), secret, &access.Principal{Name: string(r.Role), Grants: []access.Grant{g}}})
	}
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := keep.WriteFile(path, tokens); err != nil {
		t.Fatal(err)
	}
	k, err := keep.Open(keep.Config{File: path})
	if err != nil {
		t.Fatal(err)
	}
	return k, out, path
}

// Every operation over HTTP, by each role and by a client without a token, on the role's topic and on another: refused
// exactly where the table of rights says, with 401 or 403.
func TestRightsOverHTTP(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"), newTopic("other"))
	k, all, _ := holders(t)
	base, _ := e.gateway(func(c *gateway.Config) { c.Tokens = k })
	inPath := regexp.MustCompile(`\{(\w+)\}`)
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, o := range operations.All {
				for _, topic := range []string{"app", "other"} {
					url := base + inPath.ReplaceAllStringFunc(o.Path, func(name string) string {
						if name == "{topic}" {
							return topic
						}
						return "1"
					})
					if o.Param("topic") != nil {
						url += "?topic=" + topic
					}
					what := fmt.Sprintf("%s %s on %s", o.Method, o.Path, topic)
					if o == &operations.Tail {
						url += "?from=x" // refused, where it is not refused before
					}
					code, text := e.askAs(o.Method, url, c.secret)
					refused := code == http.StatusUnauthorized || code == http.StatusForbidden
					var may error
					switch right := o.Right; right.Of {
					case operations.OfAll:
						may = c.who.May(right.Action, "")
					case operations.OfSome:
						may = c.who.MaySome(right.Action)
					case operations.OfNamed:
						may = c.who.May(right.Action, topic)
					}
					if refused != (may != nil) {
						t.Errorf("%s: %d %.200s; expected: %v", what, code, text, may)
					}
					if refused && (code == http.StatusUnauthorized) != (c.secret == "") {
						t.Errorf("%s: %d", what, code)
					}
				}
			}
			for _, pattern := range gateway.Foreign() {
				method, path, _ := strings.Cut(pattern, " ")
				if !strings.HasPrefix(path, "/t/{topic}/") || strings.HasSuffix(path, "/push") || strings.HasSuffix(path, "/write") {
					continue // of the topic that the gateway has for it; or in TestRightsToSend
				}
				for _, topic := range []string{"app", "other"} {
					code, text := e.askAs(method, base+inPath.ReplaceAllString(strings.Replace(path, "{topic}", topic, 1), "1"), c.secret)
					refused := code == http.StatusUnauthorized || code == http.StatusForbidden
					if may := c.who.May(access.Read, topic); refused != (may != nil) || refused && (code == http.StatusUnauthorized) != (c.secret == "") {
						t.Errorf("%s on %s: %d %.200s; expected: %v", pattern, topic, code, text, may)
					}
				}
			}
			code, text := e.askAs(http.MethodGet, base+"/v1/topics", c.secret)
			if c.name == "read" && (code != http.StatusOK || !strings.Contains(text, `"app"`) || strings.Contains(text, `"other"`)) {
				t.Errorf("the topics of a reader of app: %d %s", code, text)
			}
		})
	}
}

// A token that is wrong or whose time has ended is refused by every route, declared or another program's, whatever it asks for.
func TestWrongAndEndedTokens(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"))
	wrong, _ := access.NewSecret()
	ended, id := access.NewSecret()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	var all []access.Grant
	for _, r := range access.Rights {
		all = append(all, access.Grant{Role: r.Role, Topics: map[bool][]string{false: {"*"}}[r.Everywhere]})
	}
	if err := keep.WriteFile(path, []access.Token{{Name: "ended", ID: id, Digest: access.DigestOf(ended), Grants: all, Expires: time.Now().Add(-time.Hour)}}); err != nil {
		t.Fatal(err)
	}
	k, err := keep.Open(keep.Config{File: path})
	if err != nil {
		t.Fatal(err)
	}
	base, _ := e.gateway(func(c *gateway.Config) { c.Tokens = k })
	routes := gateway.Foreign()
	for _, o := range operations.All {
		routes = append(routes, o.Method+" "+o.Path)
	}
	inPath := regexp.MustCompile(`\{\w+\}`)
	var asking errgroup.Group
	asking.SetLimit(64) // who tries many waits for each
	for _, secret := range []string{wrong, ended} {
		for _, route := range append(routes, "GET /mcp", "DELETE /mcp", "POST /elastic/_bulk") {
			asking.Go(func() error {
				method, path, _ := strings.Cut(route, " ")
				code, text := e.sendAs(method, base+inPath.ReplaceAllString(path, "app"), secret, "application/json", "{}")
				if code != http.StatusUnauthorized && code != http.StatusTooManyRequests || strings.Contains(text, "ended") {
					t.Errorf("%s: %d %.200s", route, code, text)
				}
				return nil
			})
		}
	}
	_ = asking.Wait()
}

// What bodies name: an erasure and a replay of another topic, a replay into a topic that the token may not write, and into a subject.
func TestRightsOfWhatBodiesName(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"), newTopic("other"))
	k, all, path := holders(t)
	base, _ := e.gateway(func(c *gateway.Config) { c.Tokens = k })
	t.Run("a tail whose token is removed", func(t *testing.T) { e.tailEnds(t, base, path, all) })
	for _, c := range all {
		if c.name != "operate" {
			continue
		}
		for name, r := range map[string]struct {
			path, body string
			code       int
		}{
			"an erasure of its topic":   {"/v1/erasures?dry_run", `{"topic":"app","users":["u"]}`, http.StatusOK},
			"an erasure of another":     {"/v1/erasures?dry_run", `{"topic":"other","users":["u"]}`, http.StatusForbidden},
			"a replay of another":       {"/v1/replays", `{"topic":"other","into":"app"}`, http.StatusForbidden},
			"a replay into another":     {"/v1/replays", `{"topic":"app","into":"other"}`, http.StatusForbidden},
			"a replay into a subject":   {"/v1/replays", `{"topic":"app","into":"$KV.registry.topics.app"}`, http.StatusForbidden},
			"a replay into an own name": {"/v1/replays", `{"topic":"app","into":"events.app.2026-11.0"}`, http.StatusForbidden},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if code, text := e.sendAs(http.MethodPost, base+r.path, c.secret, "application/json", r.body); code != r.code {
					t.Errorf("%d %s", code, text)
				}
			})
		}
	}
}

// What an id names: jobs, erasures and dead letters of a topic that a token may operate are for it, and those of another are as if there were none.
func TestRightsOfWhatIDsName(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"), newTopic("other"))
	k, all, _ := holders(t)
	base, _ := e.gateway(func(c *gateway.Config) { c.Tokens = k })
	secret := func(role access.Role) string {
		return all[slices.IndexFunc(all, func(h holder) bool { return h.name == string(role) })].secret
	}
	asked := func(role access.Role, method, path, body string, want int, out any) {
		t.Helper()
		code, text := e.sendAs(method, base+path, secret(role), "application/json", body)
		if code != want {
			t.Fatalf("%s %s as %s: %d %s, want %d", method, path, role, code, text, want)
		}
		if out != nil {
			if err := json.Unmarshal([]byte(text), out); err != nil {
				t.Fatalf("%s %s: %v in %s", method, path, err, text)
			}
		}
	}
	type ids struct{ job, erasure, letter string }
	of := map[string]ids{}
	for topic, role := range map[string]access.Role{"app": access.RoleOperate, "other": access.RoleAdmin} {
		var j struct {
			ID      string `json:"id"`
			Request struct {
				Erasure string `json:"erasure"`
			} `json:"request"`
		}
		asked(role, http.MethodPost, "/v1/erasures", `{"topic":"`+topic+`","users":["u"]}`, http.StatusAccepted, &j)
		e.publish(schemas.DeadSubject(topic), "not JSON", schemas.HeaderReason, "bad-json", schemas.HeaderSourceSubject, "events."+topic+".2026-02.0")
		var list struct {
			Dead []query.DeadLetter `json:"dead"`
		}
		asked(role, http.MethodGet, "/v1/dead?topic="+topic, "", http.StatusOK, &list)
		if len(list.Dead) != 1 || j.ID == "" || j.Request.Erasure == "" {
			t.Fatalf("of %s: job %+v, letters %+v", topic, j, list)
		}
		of[topic] = ids{j.ID, j.Request.Erasure, list.Dead[0].ID}
	}
	app, other, none := of["app"], of["other"], ids{"0123456789abcdef", "0123456789abcdef", "999999999@2026-11-20T12:00:00Z"}
	for name, c := range map[string]struct {
		method string
		path   func(ids) string
		own    []int // what its own is answered with
	}{
		"a job":               {http.MethodGet, func(i ids) string { return "/v1/jobs/" + i.job }, []int{http.StatusOK}},
		"the end of a job":    {http.MethodDelete, func(i ids) string { return "/v1/jobs/" + i.job }, []int{http.StatusOK, http.StatusConflict}}, // it may have ended
		"an erasure":          {http.MethodGet, func(i ids) string { return "/v1/erasures/" + i.erasure }, []int{http.StatusOK}},
		"an erasure again":    {http.MethodPost, func(i ids) string { return "/v1/erasures/" + i.erasure + "/resume" }, []int{http.StatusAccepted}},
		"a letter":            {http.MethodGet, func(i ids) string { return "/v1/dead/" + i.letter }, []int{http.StatusOK}},
		"a letter sent again": {http.MethodPost, func(i ids) string { return "/v1/dead/retry?topic=app&seq=" + i.letter }, []int{http.StatusAccepted}},
		"a trial of it":       {http.MethodPost, func(i ids) string { return "/v1/dead/retry?topic=app&dry_run&seq=" + i.letter }, []int{http.StatusOK}},
		"a trial of a drop":   {http.MethodPost, func(i ids) string { return "/v1/dead/drop?topic=app&dry_run&seq=" + i.letter }, []int{http.StatusOK}},
	} {
		t.Run(name, func(t *testing.T) {
			ask := func(i ids) (int, string) {
				code, text := e.askAs(c.method, base+c.path(i), secret(access.RoleOperate))
				for _, id := range []string{i.job, i.erasure, i.letter} {
					text = strings.ReplaceAll(text, id, "ID")
				}
				return code, regexp.MustCompile(`"request_id":"[^"]*"`).ReplaceAllString(text, "")
			}
			if code, text := ask(app); !slices.Contains(c.own, code) {
				t.Errorf("its own: %d %s", code, text)
			}
			code, text := ask(other)
			if absent, says := ask(none); code != http.StatusNotFound || absent != code || says != text {
				t.Errorf("another's: %d %s, and what is not there: %d %s", code, text, absent, says)
			}
		})
	}
	for path, want := range map[string]int{
		"/v1/dead/retry?topic=app": http.StatusAccepted, "/v1/dead/drop?topic=app": http.StatusAccepted, "/v1/dead/drop": http.StatusForbidden,
		"/v1/dead/retry?topic=other": http.StatusForbidden, "/v1/dead/drop?topic=other": http.StatusForbidden, "/v1/dead/drop?topic=app&topic=other": http.StatusForbidden,
	} {
		asked(access.RoleOperate, http.MethodPost, path, "", want, nil)
	}
	// Nothing became of what was asked of the other topic.
	var j struct {
		CancelledBy string `json:"cancelled_by"`
	}
	asked(access.RoleAdmin, http.MethodGet, "/v1/jobs/"+other.job, "", http.StatusOK, &j)
	var list struct {
		Jobs []struct{ Topic, By string } `json:"jobs"`
	}
	asked(access.RoleAdmin, http.MethodGet, "/v1/jobs?topic=other", "", http.StatusOK, &list)
	if j.CancelledBy != "" || len(list.Jobs) != 1 || list.Jobs[0].By != "admin" {
		t.Errorf("of other: cancelled by %q, jobs %+v", j.CancelledBy, list.Jobs)
	}
	if letters := e.lettersNow("other"); len(letters) != 1 {
		t.Errorf("of other are left %+v", letters)
	}
}

// The ways to send, by a token that may, by one that may not, and without one on loopback.
func TestRightsToSend(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"), newTopic("other"), dozensOf(t, kinds.Metric, "points"), dozensOf(t, kinds.Metric, "others"))
	k, all, _ := holders(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	overHTTP, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	otlp := "http://" + overHTTP.Addr().String()
	base, _ := e.gateway(func(c *gateway.Config) {
		c.Tokens, c.OTLPGRPC, c.OTLPHTTP, c.Topic, c.MetricsTopic = k, l, overHTTP, "app", "points"
	})
	nc, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	const loki = `{"streams":[{"stream":{"a":"b"},"values":[["1764000000000000000","x"]]}]}`
	for _, c := range all {
		for _, topic := range []string{"app", "other"} {
			may := c.who.May(access.Send, topic) == nil
			points := map[string]string{"app": "points", "other": "others"}[topic] // the same rights
			for name, r := range map[string]struct{ url, kind, body string }{
				"lines":         {base + "/v1/topics/" + topic + "/events", "application/x-ndjson", `{"message":"x"}`},
				"Loki":          {base + "/t/" + topic + "/loki/api/v1/push", "application/json", loki},
				"bulk":          {base + "/elastic/" + topic + "/_bulk", "application/x-ndjson", "{\"create\":{}}\n{\"message\":\"x\"}\n"},
				"OTLP logs":     {otlp + "/t/" + topic + "/v1/logs", "application/json", otlpLogs},
				"OTLP metrics":  {otlp + "/t/" + points + "/v1/metrics", "application/json", otlpMetrics},
				"remote writes": {base + "/t/" + points + "/api/v1/write", "application/x-protobuf", remoteWrite(t)},
			} {
				t.Run(c.name+", "+topic+", "+name, func(t *testing.T) {
					t.Parallel()
					code, text := e.sendAs(http.MethodPost, r.url, c.secret, r.kind, r.body)
					took := code/100 == 2 && !strings.Contains(text, "security_exception")
					if took != may || code == http.StatusUnauthorized && c.secret != "" {
						t.Errorf("%d %s, expected that it may: %v", code, text, may)
					}
				})
			}
			t.Run(c.name+", "+topic+", gRPC", func(t *testing.T) {
				t.Parallel()
				ctx := metadata.AppendToOutgoingContext(t.Context(), "almanac-topic", topic)
				if c.secret != "" {
					ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.secret)
				}
				logs := plog.NewLogs()
				logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("x")
				_, err := plogotlp.NewGRPCClient(nc).Export(ctx, plogotlp.NewExportRequestFromLogs(logs))
				want := codes.OK
				if !may {
					want = codes.PermissionDenied
				}
				if status.Code(err) != want {
					t.Errorf("%v, expected %s", err, want)
				}
				metrics := pmetric.NewMetrics()
				m := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
				m.SetName("m")
				point := m.SetEmptyGauge().DataPoints().AppendEmpty()
				point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
				point.SetDoubleValue(1)
				md, _ := metadata.FromOutgoingContext(ctx)
				md.Set("almanac-topic", points)
				if _, err := pmetricotlp.NewGRPCClient(nc).Export(metadata.NewOutgoingContext(ctx, md), pmetricotlp.NewExportRequestFromMetrics(metrics)); status.Code(err) != want {
					t.Errorf("metrics: %v, expected %s", err, want)
				}
			})
		}
		t.Run(c.name+", reads of the gateway's own topics", func(t *testing.T) {
			t.Parallel()
			for path, may := range map[string]error{"/api/v1/labels": c.who.May(access.Read, "points"), "/loki/api/v1/labels": c.who.MaySome(access.Read)} {
				code, text := e.askAs(http.MethodGet, base+path, c.secret)
				if (code == http.StatusOK) != (may == nil) || may != nil && code != map[bool]int{true: http.StatusUnauthorized, false: http.StatusForbidden}[c.secret == ""] {
					t.Errorf("%s: %d %.200s; expected: %v", path, code, text, may)
				}
			}
		})
	}
	// A listener that other machines reach asks this machine's programs too, whatever they say of themselves.
	open, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	e.gateway(func(c *gateway.Config) { c.Tokens, c.OTLPGRPC, c.Topic, c.MetricsTopic = k, open, "app", "points" })
	beyond, err := grpc.NewClient("127.0.0.1:"+strconv.Itoa(open.Addr().(*net.TCPAddr).Port), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = beyond.Close() })
	wrong, _ := access.NewSecret()
	for _, c := range []struct {
		name string
		to   *grpc.ClientConn
		says []string
		want codes.Code
	}{
		{"a wrong token", nc, []string{"authorization", "Bearer " + wrong}, codes.Unauthenticated},
		{"two tokens", nc, []string{"authorization", "Bearer " + all[0].secret, "authorization", "Bearer " + wrong}, codes.InvalidArgument},
		{"two keys", nc, []string{"x-clickhouse-key", wrong, "x-clickhouse-key", wrong}, codes.InvalidArgument},
		{"a proxy", nc, []string{"x-forwarded-host", "x"}, codes.Unauthenticated},
		{"no token, from elsewhere", beyond, nil, codes.Unauthenticated},
		{"a wrong token, from elsewhere", beyond, []string{"authorization", "Bearer " + wrong}, codes.Unauthenticated},
		{"no token, as if from here", beyond, []string{"x-forwarded-for", "127.0.0.1"}, codes.Unauthenticated},
	} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), c.says...)
		if _, err := plogotlp.NewGRPCClient(c.to).Export(ctx, plogotlp.NewExportRequest()); status.Code(err) != c.want {
			t.Errorf("gRPC with %s: %v", c.name, err)
		}
	}
}

// tailEnds follows a topic, takes the tail's token away, and finds that the tail ends.
func (e *env) tailEnds(t *testing.T, base, path string, all []holder) {
	t.Helper()
	i := slices.IndexFunc(all, func(h holder) bool { return h.name == string(access.RoleRead) })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/topics/app/tail", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+all[i].secret)
	ended := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			if resp.StatusCode == http.StatusUnauthorized { // nothing was sent before
				err = io.ErrUnexpectedEOF
			}
			_ = resp.Body.Close()
		}
		ended <- err
	}()
	loki := tailLoki(t, base, http.Header{"Authorization": {"Bearer " + all[i].secret}}, "query", `{topic="app"}`)
	err = keep.Change(path, func(tokens []access.Token) ([]access.Token, error) {
		return slices.DeleteFunc(tokens, func(t access.Token) bool { return t.Name == all[i].name }), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it ended as if it were whole")
		}
	case <-time.After(2 * time.Minute):
		t.Error("it goes on")
	}
	reading, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	if _, _, err := loki.conn.Read(reading); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("Loki's ends with %v", err)
	}
}

// askAs makes a request without a body.
func (e *env) askAs(method, url, secret string) (code int, text string) {
	e.t.Helper()
	return e.sendAs(method, url, secret, "", "")
}

// sendAs makes a request by a token. Whatever listener answers 401 says how to give one, and no other answer does.
func (e *env) sendAs(method, url, secret, kind, body string) (code int, text string) {
	e.t.Helper()
	req, err := http.NewRequestWithContext(e.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		e.t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.t.Error(err)
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		e.t.Error(err)
	}
	var want []string
	if resp.StatusCode == http.StatusUnauthorized {
		want = []string{"Bearer"}
	}
	if said := resp.Header.Values("WWW-Authenticate"); !slices.Equal(said, want) {
		e.t.Errorf("%s %s: %s with WWW-Authenticate %q; 401 has Bearer, and nothing else has it", method, req.URL.Path, resp.Status, said)
	}
	return resp.StatusCode, string(answer)
}
