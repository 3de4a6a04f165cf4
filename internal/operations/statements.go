package operations

import (
	"net/http"

	"github.com/almanac-events/almanac/internal/access"
)

const anything = "*/*"

var (
	statementID = Param{Name: "id", In: Path, Required: true, Help: "the X-Request-Id of the statement's `REQUEST`"}
	statement   = Param{Name: "query", Help: "a `STATEMENT`; the body follows it"}
	relayed     = []Answer{{Text: "As ClickHouse answers", Media: []string{anything}}}
)

// Statements.
var (
	SQL = Operation{
		Tool: "sql", Method: http.MethodPost, Path: "/v1/sql", Summary: "A statement that reads", Right: Right{access.SQL, OfSome}, Rows: AllRows, Access: Reads,
		Description: "The id of the request, X-Request-Id, names the statement",
		Params:      []Param{{Name: "format", Help: "`NAME` of a ClickHouse format", Note: "; JSONEachRow unless told"}},
		Body:        &Body{Media: []string{"text/plain"}},
		Answers:     []Answer{{Code: http.StatusOK, Text: "OK, in the format that was asked for", Media: []string{anything}, Headers: []string{"Almanac-Read-Rows", "Almanac-Read-Bytes"}}},
		Refused:     []int{http.StatusConflict},
	}
	// Statement is GET /v1/sql/{id}.
	Statement = Operation{
		Method: http.MethodGet, Path: "/v1/sql/{id}", Summary: "How far a statement of one's own is that this gateway runs, or what it took", Right: Right{access.SQL, OfSome}, Rows: AllRows, Access: Reads,
		Params: []Param{statementID}, Answers: ok("Statement"),
	}
	// CancelStatement is DELETE /v1/sql/{id}.
	CancelStatement = Operation{
		Method: http.MethodDelete, Path: "/v1/sql/{id}", Summary: "Cancel a statement of one's own that this gateway runs", Right: Right{access.SQL, OfSome}, Rows: AllRows,
		Params: []Param{statementID}, Answers: ok("Statement"),
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
