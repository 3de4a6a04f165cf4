package operations

import (
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
)

const anything = "*/*"

var (
	statement = Param{Name: "query", Help: "a `STATEMENT`; the body follows it"}
	relayed   = []Answer{{Text: "As ClickHouse answers", Media: []string{anything}}}
)

// Statements.
var (
	SQL = Operation{
		Tool: "sql", Method: http.MethodPost, Path: "/v1/sql", Summary: "A statement that reads", Right: Right{access.SQL, OfSome}, Rows: AllRows, Access: Reads,
		Params:  []Param{{Name: "format", Help: "`NAME` of a ClickHouse format", Note: "; JSONEachRow unless told"}},
		Body:    &Body{Media: []string{"text/plain"}},
		Answers: []Answer{{Code: http.StatusOK, Text: "OK, in the format that was asked for", Media: []string{anything}}},
	}
	// SQLSchema is GET /v1/sql/schema.
	SQLSchema = Operation{
		Tool: "sql_schema", Method: http.MethodGet, Path: "/v1/sql/schema", Summary: "The tables that statements may read, with their columns", Right: Right{access.SQL, OfSome}, Rows: AllRows, Access: Reads,
		Answers: ok("SQLSchema"),
	}
	ClickHouse = Operation{
		Method: http.MethodGet, Path: "/clickhouse/", Summary: "ClickHouse's own HTTP interface as an account that only reads", Right: Right{access.SQL, OfSome}, Rows: AllRows, Access: Reads, Foreign: true,
		Params: []Param{statement}, Answers: relayed,
	}
	ClickHousePost = Operation{
		Method: http.MethodPost, Path: "/clickhouse/", Summary: "ClickHouse's own HTTP interface as an account that only reads", Right: Right{access.SQL, OfSome}, Rows: AllRows, Access: Reads, Foreign: true,
		Params: []Param{statement}, Body: &Body{Optional: true, Media: []string{anything}}, Answers: relayed,
	}
	ClickHousePing = Operation{
		Method: http.MethodGet, Path: "/clickhouse/ping", Summary: "Whether ClickHouse answers", Right: Right{access.Open, OfAll}, Foreign: true,
		Answers: []Answer{{Code: http.StatusOK, Media: []string{anything}}},
	}
)
