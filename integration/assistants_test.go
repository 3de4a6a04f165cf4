package integration

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/gateway"
	"github.com/almanac-events/almanac/internal/gateway/mcp"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// bearer adds a secret to requests.
type bearer string

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// An assistant lists the tools and calls each: with a token of one topic it gets what that topic holds, and no answer names
// another topic, nor what is in it. Each call that reads is recorded under the token's name.
func TestAssistants(t *testing.T) {
	t.Parallel()
	const secretTopic, secretWord = "zebrafinch", "kookaburra"
	e := start(t, newTopic("app"), newTopic(secretTopic), schemas.NewTopicOf(kinds.Audit, "reads"))
	text, id := access.NewSecret()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	grants := []access.Grant{{Role: access.RoleRead, Topics: []string{"app"}}}
	if err := keep.WriteFile(path, []access.Token{{Name: "assistant", ID: id, Digest: access.DigestOf(text), Grants: grants}}); err != nil {
		t.Fatal(err)
	}
	tokens, err := keep.Open(keep.Config{File: path})
	if err != nil {
		t.Fatal(err)
	}
	base, _ := e.gateway(func(c *gateway.Config) { c.Tokens, c.AuditReads, c.Version = tokens, "reads", "v1.2.3" })
	e.router()
	e.sink()
	at := time.Now().UTC().Add(-time.Minute)
	for topic, word := range map[string]string{"app": "antler", secretTopic: secretWord} {
		p := e.producer(topic)
		for n := range 20 {
			ev := producer.Event{Time: at.Add(time.Duration(n) * time.Second), Level: "error", Service: word + "-service", UserID: word + "-user", Message: fmt.Sprint(word, " did ", n), Attrs: []schemas.Attr{schemas.String("host", word+"-host")}}
			if err := p.Publish(t.Context(), ev); err != nil {
				t.Fatal(err)
			}
		}
		e.stored(topic, 20, 30*time.Second)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil)
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: base + "/mcp", HTTPClient: &http.Client{Transport: bearer(text)}, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = session.Close() }()
	call := func(tool string, args map[string]any) (string, bool) {
		t.Helper()
		res, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatalf("%s %v: %v", tool, args, err)
		}
		all := ""
		for _, c := range res.Content {
			all += c.(*sdk.TextContent).Text
		}
		return all, res.IsError
	}
	for tool, c := range map[string]struct {
		args map[string]any
		want string
	}{
		"topics": {nil, `"name":"app"`}, "topic": {map[string]any{"topic": "app"}, `"name":"app"`},
		"search":    {map[string]any{"topic": "app", "where": "message CONTAINS 'did 7'", "limit": 3}, "antler did 7"},
		"count":     {map[string]any{"topic": "app", "where": "level = 'error'"}, `"count":20`},
		"histogram": {map[string]any{"topic": "app", "from": "-10m", "step": "1h"}, `"count":`},
		"facets":    {map[string]any{"topic": "app", "fields": []string{"service"}}, "antler-service"},
		"fields":    {map[string]any{"topic": "app"}, "attributes.host"}, "values": {map[string]any{"topic": "app", "field": "user_id"}, "antler-user"},
	} {
		if got, failed := call(tool, c.args); failed || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s; expected %s", tool, got, c.want)
		}
	}
	for _, tool := range []string{"search_topics", "count_topics"} {
		if got, failed := call(tool, map[string]any{"topic": []string{"app"}, "where": "message CONTAINS 'did 7'"}); failed || !strings.Contains(got, `"topic":"app"`) {
			t.Errorf("%s: %s", tool, got)
		}
		if got, failed := call(tool, map[string]any{"topic": []string{"app", secretTopic}}); !failed || strings.Contains(got, secretWord) {
			t.Errorf("%s of a topic of one's own and another is answered: %s", tool, got)
		}
	}
	list, err := session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != len(mcp.Names()) {
		t.Fatalf("%d tools, %v", len(list.Tools), err)
	}
	statement := "SELECT * FROM " + secretTopic
	for _, tool := range list.Tools {
		schema := tool.InputSchema.(map[string]any)
		for _, topic := range []string{secretTopic, "app"} {
			args := map[string]any{}
			required, _ := schema["required"].([]any)
			for _, name := range required {
				args[name.(string)] = map[string]any{"topic": topic, "statement": statement, "scope": "x", "query": "{__name__=~\".+\"}", "start": 1, "end": 2, "step": "1m", "from": "-1h"}[name.(string)]
				if args[name.(string)] == nil {
					args[name.(string)] = "1"
				}
			}
			if _, ok := schema["properties"].(map[string]any)["topic"]; ok {
				args["topic"] = topic
			}
			got, failed := call(tool.Name, args)
			if args["topic"] == secretTopic && !failed {
				t.Errorf("%s of another topic is answered: %s", tool.Name, got)
			}
			if strings.Contains(got, secretWord) || strings.Contains(strings.ReplaceAll(got, fmt.Sprint(args["topic"]), ""), secretTopic) {
				t.Errorf("%s %v names another topic: %s", tool.Name, args, got)
			}
		}
	}
	eventually(t, time.Minute, func() error {
		n, err := e.ask("SELECT count() FROM %s WHERE user_id = 'assistant' AND resource = '/v1/topics/app/events'", e.table("reads"))
		if err == nil && n == 0 {
			err = errors.New("no search is recorded")
		}
		return err
	})
	t.Run("without a token", func(t *testing.T) {
		client := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil)
		wrong, _ := access.NewSecret()
		_, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: base + "/mcp", HTTPClient: &http.Client{Transport: bearer(wrong)}, DisableStandaloneSSE: true, MaxRetries: -1}, nil)
		if err == nil || !strings.Contains(err.Error(), "Unauthorized") {
			t.Errorf("a wrong token: %v", err)
		}
	})
}
