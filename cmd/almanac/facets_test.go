package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/query"
)

// Facets, fields, values and what waits, by verbs.
func TestFacets(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "app")
	var lines strings.Builder
	for i := range 30 {
		fmt.Fprintf(&lines, `{"ts":"2026-02-01T00:00:%02dZ","service":%q,"host":"h-%d","message":"m"}`+"\n", i, []string{"api", "web", "api"}[i%3], i%10)
	}
	b.ok(lines.String(), "send", "app", "--format", "ndjson")
	found := decoded[query.Facets](b, "facets", "app", "service,attributes.host", "--values", "1", "-o", "json")
	if found.Count != 30 || len(found.Facets) != 2 || found.Facets[0].Values[0] != (query.ValueCount{Value: "api", Count: 20}) || found.Facets[0].Other != 10 {
		t.Errorf("facets: %+v", found)
	}
	contains(t, b.ok("", "facets", "app", "service", "-o", "table"), "api", "20", "web", "10")
	contains(t, b.ok("", "fields", "app", "--prefix", "attributes.", "-o", "table"), "attributes.host", "30")
	contains(t, b.ok("", "values", "app", "attributes.host", "--prefix", "h-3", "-o", "table"), "h-3", "3")
	lag := decoded[query.LagReport](b, "lag", "app", "-o", "json")
	if len(lag.Topics) != 1 || lag.Topics[0].Topic != "app" || len(lag.Streams) == 0 {
		t.Errorf("lag: %+v", lag)
	}
	for call, says := range map[string]string{
		"facets app":                     "FIELDS",
		"facets app service --values 0":  "--values",
		"facets app nothing":             "nothing",
		"values app service --limit 0":   "--limit",
		"fields app --from yesterday":    "--from",
		"lag apq":                        "apq",
		"facets app service --shards -1": "--shards",
	} {
		if r := b.run("", strings.Fields(call)...); r.code != exitUsage || !strings.Contains(r.err, says) {
			t.Errorf("%s: exit %d, %s", call, r.code, r.err)
		}
	}
}
