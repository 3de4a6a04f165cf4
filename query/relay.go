package query

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// RelayRequest is a request in ClickHouse's own HTTP interface.
type RelayRequest struct {
	Params url.Values
	Header http.Header
	Body   io.Reader
	// User and Password of a read-only account; empty uses the connection's own, which
	// the statement's settings then make read-only.
	User, Password string
}

// Relay passes a request on to ClickHouse as one that may only read, and returns the
// answer as it is, refusals among them. The caller closes its body. A statement may set headers of
// the answer (SETTINGS http_response_headers): who passes them on chooses which.
func (r *Reader) Relay(ctx context.Context, req RelayRequest) (*http.Response, error) {
	for _, name := range refusedParams {
		if req.Params.Has(name) {
			return nil, fmt.Errorf("%w: the parameter %s is not passed on: an answer has the headers of its format; leave it out", schemas.ErrRequest, name)
		}
	}
	out := &tables.Relayed{Params: relayParams(req.Params), Header: http.Header{}, Body: req.Body, User: req.User, Password: req.Password}
	if out.Params.Get("database") == "" {
		out.Params.Set("database", cmp.Or(req.Header.Get("X-ClickHouse-Database"), r.db.Database))
	}
	for _, name := range relayedHeaders {
		if v := req.Header.Values(name); len(v) > 0 {
			out.Header[name] = slices.Clone(v)
		}
	}
	return r.db.Relay(ctx, out)
}

// relayedHeaders are those of a request that ClickHouse reads, but for accounts.
var relayedHeaders = []string{"Accept-Encoding", "Content-Encoding", "Content-Type", "X-Clickhouse-Format"}

// relayedID begins the query ids of relayed requests. ClickHouse runs one query of an id
// at a time, so a client must not be able to take a sink's.
const relayedID = "http-"

// ownParams are never the client's to say: the account, that it only reads, and who else may read
// the answer. A session would be shared by all who ask by one account.
var ownParams = []string{
	"user", "password", "quota_key", "role", "profile", "session_id", "session_timeout", "session_check", "close_session", "readonly", "allow_ddl", "http_write_exception_in_output_format", "add_http_cors_header",
}

// refusedParams would make the answer something else than what its format says: a page for a browser, by a mere link. A
// statement's SETTINGS can say the same, so the gateway passes on the headers alone that it knows (internal/gateway/api/relayanswer.go).
var refusedParams = []string{"http_response_headers"}

// relayParams are a client's parameters within the bounds of a statement.
func relayParams(q url.Values) url.Values {
	out := url.Values{}
	for name, values := range q {
		if !slices.Contains(ownParams, name) {
			out[name] = slices.Clone(values)
		}
	}
	for name, most := range map[string]int64{
		"max_execution_time": int64(DefaultSQLTime.Seconds()), "max_memory_usage": DefaultSQLMemoryBytes, "max_result_rows": DefaultSQLRows,
	} {
		if n, err := strconv.ParseInt(out.Get(name), 10, 64); err != nil || n < 1 || n > most {
			out.Set(name, strconv.FormatInt(most, 10))
		}
	}
	if id := out.Get("query_id"); id != "" {
		out.Set("query_id", relayedID+id)
	}
	out.Set("readonly", "2") // reads only, and settings may still shape them
	out.Set("http_write_exception_in_output_format", "0")
	out.Set("cancel_http_readonly_queries_on_client_close", "1") // else a statement goes on whose client went away
	return out
}
