package operations

import (
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
)

// What there is, and what waits.
var (
	Topics       = Operation{Tool: "topics", Method: http.MethodGet, Path: "/v1/topics", Summary: "The topics", Right: Right{access.Read, OfSome}, Rows: NoRows, Answers: ok("Topics"), Access: Reads}
	Topic        = Operation{Tool: "topic", Method: http.MethodGet, Path: "/v1/topics/{topic}", Summary: "One topic", Right: Right{Action: access.Read}, Rows: NoRows, Params: []Param{inTopic}, Answers: ok("Topic"), Access: Reads}
	DeclareTopic = Operation{
		Method: http.MethodPut, Path: "/v1/topics/{topic}", Summary: "Declare a topic, or change one", Right: Right{Action: access.Admin}, Access: ReadsAndWrites,
		Description: "The body is the whole topic, as GET answers it: what it lacks is as of a new topic, but for lanes, and fields that are there stay. version, first, lifted and since are Almanac's own and not read. " +
			"With dry_run the answer says how many events of the last day have a field that gets a privacy rule.",
		Params: []Param{inTopic, helped(dryRun, "say what would happen, and do nothing"), {Name: "yes", Kind: Switch, Help: "drop and clear what the new retention does not allow"}},
		Body:   sends("TopicRequest"), Answers: ok("TopicPlan"), Refused: []int{http.StatusConflict},
	}
	Shards = Operation{
		Tool: "shards", Method: http.MethodGet, Path: "/v1/shards", Summary: "The shards", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads,
		Params: []Param{ofTopic, {Name: "month", Help: "only `YYYY-MM`"}}, Answers: ok("Shards"),
	}
	Lag = Operation{
		Tool: "lag", Method: http.MethodGet, Path: "/v1/lag", Summary: "What waits on its way to ClickHouse", Right: Right{Action: access.Read}, Rows: AllRows, Access: Reads,
		Params: []Param{ofTopic}, Answers: ok("Lag"),
	}
	Status = Operation{
		Tool: "status", Method: http.MethodGet, Path: "/v1/status", Summary: "Which servers are away, what waits, how streams, disks, shards, members and erasures are, and what comes by the inputs of this gateway", Right: Right{access.Read, OfAll}, Rows: AllRows, Access: Reads,
		Answers: ok("Status"),
	}
	Metrics = Operation{
		Method: http.MethodGet, Path: "/metrics", Summary: "Numbers of this process and its parts, for Prometheus", Right: Right{access.Metrics, OfAll}, Rows: AllRows, Foreign: true,
		Answers: []Answer{{Code: http.StatusOK, Media: []string{"text/plain"}}}, Refused: []int{http.StatusServiceUnavailable, http.StatusGatewayTimeout},
	}
	MCP = Operation{
		Method: http.MethodPost, Path: "/mcp", Summary: "The reads of this API as tools for assistants, by the Model Context Protocol", Right: Right{access.Read, OfSome}, Rows: LimitedRows, Foreign: true,
		Description: "Each tool asks a route, with its rights, row limits and bounds. A message stands for itself: there are no sessions.",
		Body:        &Body{Media: []string{"application/json"}},
		Answers:     []Answer{{Code: http.StatusOK, Media: []string{"application/json"}}, {Code: http.StatusAccepted, Text: "A notification was taken"}},
		Refused:     []int{http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType},
	}
	Specification = Operation{
		Method: http.MethodGet, Path: "/openapi.yaml", Summary: "This document", Right: Right{access.Open, OfAll}, Foreign: true,
		Answers: []Answer{{Code: http.StatusOK, Media: []string{"application/yaml"}}},
	}
)
