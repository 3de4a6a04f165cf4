package main

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/mcp"
	"github.com/almanac-events/almanac/query"
)

// assistant opens a session with `almanac mcp`, which the client starts.
func (b *box) assistant(ctx context.Context, args ...string) *sdk.ClientSession {
	b.t.Helper()
	cmd := b.command(ctx, append([]string{"mcp"}, args...)...)
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(ctx, &sdk.CommandTransport{Command: cmd, TerminateDuration: maxWait}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return session
}

// toolSays is the text that a tool answers with, and whether it is a refusal.
func toolSays(t *testing.T, session *sdk.ClientSession, tool string, args map[string]any) (text string, refused bool) {
	t.Helper()
	res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	for _, c := range res.Content {
		if one, ok := c.(*sdk.TextContent); ok {
			text += one.Text
		}
	}
	return text, res.IsError
}

// TestMCPOnStdio holds that an assistant which starts `almanac mcp` gets the tools and their answers, with the rights of its token
// alone, and that the command ends with its input.
func TestMCPOnStdio(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up()
	for _, topic := range []string{"app", "kookaburra"} {
		b.ok("", "topics", "apply", topic)
		b.ok(`{"message":"antler of `+topic+`","level":"error"}`+"\n", "send", topic, "--format", "ndjson")
	}
	own := strings.TrimSpace(b.ok("", "token", "add", "assistant", "--read", "app"))
	wrong, _ := access.NewSecret()
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	search := map[string]any{"topic": "app", "where": "level = 'error'"}
	for name, c := range map[string]struct {
		token        string
		topics, find string // what an answer has
		refused      bool
	}{
		"without a token":       {"", `"name":"kookaburra"`, "antler of app", false},
		"a token for one topic": {own, `"name":"app"`, "antler of app", false},
		"a wrong token":         {wrong, "401: no token, or one that is not valid here", "401: no token, or one that is not valid here", true},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			if c.token != "" {
				args = []string{"--token", c.token}
			}
			session := b.assistant(ctx, args...)
			list, err := session.ListTools(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tool := range list.Tools {
				names = append(names, tool.Name)
			}
			slices.Sort(names)
			if want := slices.Sorted(slices.Values(mcp.Names())); !slices.Equal(names, want) {
				t.Errorf("the tools are %q, want %q", names, want)
			}
			for tool, want := range map[string]string{"topics": c.topics, "search": c.find} {
				asked := search
				if tool == "topics" {
					asked = nil
				}
				if got, refused := toolSays(t, session, tool, asked); refused != c.refused || !strings.Contains(got, want) || c.token == own && strings.Contains(got, "kookaburra") {
					t.Errorf("%s: refused %v: %s, want %q", tool, refused, got, want)
				}
			}
			if c.token == own {
				if got, refused := toolSays(t, session, "search", map[string]any{"topic": "kookaburra"}); !refused || strings.Contains(got, "antler") {
					t.Errorf("another topic is answered: %s", got)
				}
			}
			if err := session.Close(); err != nil {
				t.Errorf("it ended with %v", err)
			}
		})
	}
	t.Run("ends with its input", func(t *testing.T) {
		r := b.run(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`+"\n", "mcp")
		if r.code != exitOK || r.err != "" { // what it was asked just before may be answered, or not
			t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
		}
	})
}

// TestMCPAnswers holds what tools answer of topics of each kind and of the whole, and that an assistant which may ask SQL of one topic
// learns of no other.
func TestMCPAnswers(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	analyst := strings.TrimSpace(b.ok("", "token", "add", "analyst", "--read", "app", "--sql-topics", "app"))
	b.up("--profile", "test")
	for topic, kind := range map[string]string{"app": "log", "bills": "meter", "cpu": "metric", "changes": "audit", "customers": "document"} {
		b.ok("", "topics", "apply", topic, "--kind", kind)
	}
	b.ok(`{"ts":"2026-02-01T00:00:00Z","message":"antler 1","level":"info"}
{"ts":"2026-02-01T00:00:01Z","message":"antler 2","level":"error"}
{"ts":"2026-02-01T00:00:02Z","message":"antler 3","level":"info"}
`, "send", "app", "--format", "ndjson")
	b.ok(diffLine("s1", "c-1", 100, "2026-02-01T00:00:00Z")+"\n"+diffLine("s1", "c-2", 50, "2026-02-10T12:00:00Z")+"\n", "send", "bills", "--format", "ndjson")
	b.ok(`{"ts":"2026-02-01T00:00:00Z","type":"load","value":41.5,"host":"antler-host"}`+"\n", "send", "cpu", "--format", "ndjson")
	b.ok(`{"ts":"2026-02-01T00:00:00Z","type":"change","request_id":"r-1","scope":"s","resource":"antler-door","service":"svc","user_id":"ada","state":"committed"}`+"\n", "send", "changes", "--format", "ndjson")
	b.ok(`{"name":"antler"}`, "docs", "put", "customers", "c1")
	for topic, rows := range map[string]string{"app": "3", "bills": "2", "cpu": "1", "changes": "1"} {
		embeddedtest.Eventually(t, maxWait, func() error {
			got, err := b.try("sql", "SELECT count() FROM "+topic, "-o", "ndjson")
			if err == nil && strings.TrimSpace(got) != `{"count()":`+rows+`}` {
				err = errors.New(got + " are stored of " + topic)
			}
			return err
		})
	}
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	local, err := os.ReadFile(filepath.Join(b.data(), embedded.LocalTokenName))
	if err != nil {
		t.Fatal(err)
	}
	b.post(a.HTTP+"/v1/verify", "application/json", "", "Authorization", "Bearer "+strings.TrimSpace(string(local))) // a proof is what verify shows
	middle := decoded[query.Page](b, "query", "app", "--where", "level = 'error'", "-o", "json")
	var event struct{ Ts, ID string }
	if len(middle.Events) != 1 || json.Unmarshal(middle.Events[0], &event) != nil {
		t.Fatalf("%+v", middle)
	}
	ctx, cancel := context.WithTimeout(t.Context(), maxWait)
	defer cancel()
	session := b.assistant(ctx)
	defer func() { _ = session.Close() }()
	february := map[string]any{"from": "2026-02-01", "to": "2026-03-01"}
	with := func(more map[string]any) map[string]any {
		all := maps.Clone(february)
		maps.Copy(all, more)
		return all
	}
	for tool, c := range map[string]struct {
		args map[string]any
		want []string
	}{
		"topic":            {map[string]any{"topic": "bills"}, []string{`"name":"bills"`, `"kind":"meter"`}},
		"event":            {map[string]any{"topic": "app", "ts": event.Ts, "id": event.ID}, []string{"antler 2"}},
		"around":           {map[string]any{"topic": "app", "ts": event.Ts, "id": event.ID, "n": 1}, []string{"antler 1", "antler 2", "antler 3"}},
		"trail":            {with(map[string]any{"topic": "changes", "scope": "s", "resource": "antler-door"}), []string{`"request_id":"r-1"`, "committed"}},
		"usage":            {with(map[string]any{"topic": "bills", "measure": "sum", "group_by": "space"}), []string{`"space":"s1"`, `"150"`}},
		"usage_diffs":      {with(map[string]any{"topic": "bills"}), []string{`"c-1"`, `"c-2"`}},
		"series":           {map[string]any{"topic": "cpu", "metric": "load"}, []string{"antler-host"}},
		"align":            {with(map[string]any{"topic": "cpu", "metric": []string{"load"}}), []string{"antler-host", "41.5"}},
		"promql":           {map[string]any{"topic": "cpu", "query": "sum by (host) (load)", "start": "2026-02-01T00:00:00Z", "end": "2026-02-01T00:01:00Z", "step": "1m"}, []string{"antler-host", `"41.5"`}},
		"sql":              {map[string]any{"statement": "SELECT message FROM app WHERE level = 'error'"}, []string{"antler 2"}},
		"sql_schema":       {nil, []string{`"app"`, `"bills"`, `"message"`}},
		"verify":           {nil, []string{`"missing":0`, `"app"`}},
		"shards":           {map[string]any{"topic": "app"}, []string{"app-registry:2026-02:shard:"}},
		"document":         {map[string]any{"topic": "customers", "id": "c1"}, []string{`"name":"antler"`}},
		"document_history": {map[string]any{"topic": "customers", "id": "c1"}, []string{`"antler"`}},
		"documents":        {map[string]any{"topic": "customers"}, []string{`"c1"`}},
	} {
		t.Run(tool, func(t *testing.T) {
			got, refused := toolSays(t, session, tool, c.args)
			if refused {
				t.Errorf("refused: %s", got)
			}
			contains(t, got, c.want...)
		})
	}
	t.Run("sql of one topic", func(t *testing.T) { // which needs a ClickHouse of its own: the one of `up` refuses it
		session := b.assistant(ctx, "--token", analyst)
		defer func() { _ = session.Close() }()
		for tool, args := range map[string]map[string]any{"sql_schema": nil, "sql": {"statement": "SELECT * FROM bills"}} {
			got, refused := toolSays(t, session, tool, args)
			if !refused || !strings.Contains(got, "needs a ClickHouse server of its own") || strings.Contains(got, "antler") || strings.Contains(got, "bills") {
				t.Errorf("%s: refused %v: %s", tool, refused, got)
			}
		}
		if got, refused := toolSays(t, session, "search", map[string]any{"topic": "app"}); refused || !strings.Contains(got, "antler 2") {
			t.Errorf("refused %v: %s", refused, got)
		}
	})
}
