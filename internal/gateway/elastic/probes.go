package elastic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
)

// Version is the version of Elasticsearch whose bulk API is spoken.
const Version = "8.19.0"

// ProductHeader and Product are in each response with a 2xx status; the clients for
// JavaScript and Python refuse to go on without.
const (
	ProductHeader = "X-Elastic-Product"
	Product       = "Elasticsearch"
)

// vendor is the media type of clients that ask for a version of the API.
const vendor = "application/vnd.elasticsearch+json"

// ContentType returns the type of a response to a client that accepts these types:
// the versioned one it asks for, else plain JSON.
func ContentType(accept string) string {
	for part := range strings.SplitSeq(accept, ",") {
		kind, version, _ := strings.Cut(part, ";")
		if strings.TrimSpace(kind) != vendor {
			continue
		}
		version = strings.TrimSpace(version)
		if n, ok := strings.CutPrefix(version, "compatible-with="); ok && len(n) == 1 && n[0] >= '0' && n[0] <= '9' {
			return vendor + ";" + version
		}
		return vendor
	}
	return "application/json"
}

// Probe returns the body of the answer to a request by which a client looks for an
// Elasticsearch or prepares it, with status 200. False: it is none of those.
func Probe(method, path string) (body any, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	read := method == http.MethodGet || method == http.MethodHead
	acknowledged := map[string]any{"acknowledged": true}
	switch first := parts[0]; {
	case path == "/" || path == "":
		return about, read
	case first == "_license" || first == "_xpack" && len(parts) == 2 && parts[1] == "license":
		return license, read
	case first == "_cluster" && len(parts) >= 2 && parts[1] == "health":
		return health, read
	case first == "_cat" && len(parts) >= 2 && parts[1] == "health":
		return []any{catHealth}, read
	case first == "_nodes":
		return nodes, read
	case slices.Contains([]string{"_index_template", "_component_template", "_template"}, first) && len(parts) == 2:
		if read {
			return templates(first, parts[1]), true
		}
		return acknowledged, method == http.MethodPut || method == http.MethodPost
	case (first == "_ilm" && len(parts) == 3 && parts[1] == "policy") || (first == "_ingest" && len(parts) == 3 && parts[1] == "pipeline"):
		if read {
			return map[string]any{parts[2]: map[string]any{"version": 1}}, true
		}
		return acknowledged, method == http.MethodPut
	case first == "_data_stream" && len(parts) == 2:
		if read {
			return map[string]any{"data_streams": []any{map[string]any{"name": parts[1], "status": "GREEN", "generation": 1}}}, true
		}
		return acknowledged, method == http.MethodPut
	case parts[len(parts)-1] == "_refresh" && len(parts) <= 2:
		return map[string]any{"_shards": map[string]any{"total": 1, "successful": 1, "failed": 0}}, read || method == http.MethodPost
	case len(parts) == 1 && !strings.HasPrefix(first, "_"):
		return map[string]any{}, method == http.MethodHead // whether an index exists; bulk says which do
	}
	return nil, false
}

// PlainHealth is /_cat/health as text, for clients that do not ask for JSON.
func PlainHealth() string {
	return "0 00:00:00 almanac green 1 1 0 0 0 0 0 0 - 100.0%\n"
}

// Text is the body of a probe as JSON.
func Text(body any) []byte {
	b, err := json.Marshal(body)
	if err != nil {
		return nil // cannot be: it is maps of texts and numbers
	}
	return b
}

type object = map[string]any

var (
	about = object{
		"name": "almanac", "cluster_name": "almanac", "cluster_uuid": "almanac", "tagline": "You Know, for Search",
		"version": object{
			"number": Version, "build_flavor": "default", "build_type": "tar", "build_hash": "unknown", "build_date": "2025-01-01T00:00:00.000Z",
			"build_snapshot": false, "lucene_version": "9.12.0", "minimum_wire_compatibility_version": "7.17.0",
			"minimum_index_compatibility_version": "7.0.0",
		},
	}
	license = object{"license": object{"status": "active", "type": "basic", "mode": "basic", "uid": "almanac"}}
	health  = object{
		"cluster_name": "almanac", "status": "green", "timed_out": false, "number_of_nodes": 1, "number_of_data_nodes": 1,
		"active_primary_shards": 0, "active_shards": 0, "relocating_shards": 0, "initializing_shards": 0, "unassigned_shards": 0,
		"delayed_unassigned_shards": 0, "number_of_pending_tasks": 0, "number_of_in_flight_fetch": 0,
		"task_max_waiting_in_queue_millis": 0, "active_shards_percent_as_number": 100.0,
	}
	catHealth = object{"cluster": "almanac", "status": "green", "node.total": "1", "node.data": "1", "shards": "0", "pri": "0"}
	nodes     = object{"_nodes": object{"total": 0, "successful": 0, "failed": 0}, "cluster_name": "almanac", "nodes": object{}}
)

func templates(kind, name string) any {
	switch kind {
	case "_index_template":
		return object{"index_templates": []any{object{"name": name, "index_template": object{"index_patterns": []string{"*"}}}}}
	case "_component_template":
		return object{"component_templates": []any{object{"name": name, "component_template": object{"template": object{}}}}}
	}
	return object{name: object{"index_patterns": []string{"*"}}}
}
