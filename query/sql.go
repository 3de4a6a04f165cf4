package query

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// SQLRequest is a read in ClickHouse's SQL.
type SQLRequest struct {
	SQL string
	// Format is a ClickHouse format; empty means JSONEachRow.
	Format string
	// MaxTime and MaxMemoryBytes bound the statement. Defaults 30 s and 2 GiB.
	MaxTime        time.Duration
	MaxMemoryBytes int64
	// MaxRows bounds the answer; default 1,000,000. The account allows 10,000,000.
	MaxRows uint64
	// User and Password of a read-only account; empty uses the connection's own,
	// which the statement's settings then make read-only.
	User, Password string
	// ID names the statement in ClickHouse's query log, behind a word of its own; empty: ClickHouse names it.
	ID string
	// Asked, when set, hears by which id ClickHouse is asked, before it is.
	Asked func(id string)
	// Began, when set, hears what had been read when the answer began.
	Began func(SQLRead)
}

// SQLRead is what ClickHouse read for a statement.
type SQLRead struct {
	Rows  uint64 `json:"rows"`
	Bytes uint64 `json:"bytes"`
}

// Defaults of SQLRequest.
const (
	DefaultSQLTime        = 30 * time.Second
	DefaultSQLMemoryBytes = 2 << 30
	DefaultSQLRows        = 1_000_000
)

// statementID begins the query ids of statements.
const statementID = "sql-"

var formatRule = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// SQL runs a statement that only reads and streams its answer; the caller closes
// it. The server refuses everything that writes.
func (r *Reader) SQL(ctx context.Context, req SQLRequest) (io.ReadCloser, error) {
	if req.SQL == "" {
		return nil, fmt.Errorf("%w: the statement is empty", schemas.ErrRequest)
	}
	if verb := writes(req.SQL); verb != "" {
		return nil, fmt.Errorf("%w: SQL here only reads, and this is %s; events come in by `almanac send` or a producer, topics and fields by `almanac topics apply`", schemas.ErrRequest, verb)
	}
	// A statement may read any table, and nothing of an erasure can be left out of it.
	if err := r.ledger.Ready(ctx); err != nil {
		return nil, err
	}
	if req.Format == "" {
		req.Format = "JSONEachRow"
	}
	if !formatRule.MatchString(req.Format) {
		return nil, fmt.Errorf("%w: %q is not a format's name", schemas.ErrRequest, req.Format)
	}
	if req.MaxTime == 0 {
		req.MaxTime = DefaultSQLTime
	}
	if req.MaxMemoryBytes == 0 {
		req.MaxMemoryBytes = DefaultSQLMemoryBytes
	}
	id := ""
	if req.ID != "" { // two statements may have one id, and ClickHouse runs one of an id at a time
		id = statementID + req.ID + "-" + rand.Text()
		if req.Asked != nil {
			req.Asked(id)
		}
	}
	body, err := r.db.Select(ctx, &tables.Select{
		SQL: req.SQL, User: req.User, Password: req.Password, Own: true, ID: id,
		Began: func(read tables.Read) {
			if req.Began != nil {
				req.Began(SQLRead{read.Rows, read.Bytes})
			}
		},
		Settings: map[string]string{
			"default_format":                            req.Format,
			"max_execution_time":                        strconv.Itoa(max(1, int(req.MaxTime.Seconds()))),
			"max_memory_usage":                          strconv.FormatInt(req.MaxMemoryBytes, 10),
			"max_result_rows":                           strconv.FormatUint(cmp.Or(req.MaxRows, DefaultSQLRows), 10),
			"date_time_output_format":                   "iso",
			"output_format_json_quote_64bit_integers":   "0",
			"output_format_json_validate_utf8":          "1",
			"output_format_json_escape_forward_slashes": "0",
			"http_write_exception_in_output_format":     "0",
		},
	})
	// What ClickHouse refuses is the statement's fault, unless it only had no room
	// or no time for it.
	var refused *tables.Error
	if errors.Is(err, tables.ErrAccount) {
		return nil, fmt.Errorf("%w: %w", ErrAccount, err)
	}
	if errors.As(err, &refused) && (refused.Unwrap() == nil || errors.Is(err, tables.ErrNoTable)) {
		return nil, fmt.Errorf("%w: %w%s", schemas.ErrRequest, err, sqlNext(refused))
	}
	return body, err
}

// codeUnknownIdentifier is ClickHouse's for a column that is not there.
const codeUnknownIdentifier = 47

// sqlNext is what to do about a refused statement; "" where ClickHouse's text is enough.
func sqlNext(refused *tables.Error) string {
	switch {
	case errors.Is(refused, tables.ErrNoTable):
		return "; each topic is a table of its name: `almanac topics ls` lists them"
	case refused.Code == codeUnknownIdentifier:
		return "; `almanac sql 'DESCRIBE TABLE app'` lists the columns of topic app"
	}
	return ""
}

// writingVerbs begin the statements that change something.
var writingVerbs = []string{
	"ALTER", "ATTACH", "BACKUP", "CREATE", "DELETE", "DETACH", "DROP", "EXCHANGE", "GRANT", "INSERT", "KILL", "MOVE",
	"OPTIMIZE", "RENAME", "REPLACE", "RESTORE", "REVOKE", "SYSTEM", "TRUNCATE", "UNDROP", "UPDATE",
}

var (
	sqlComments = regexp.MustCompile(`(?s)^(\s+|--[^\n]*(\n|$)|#[! ][^\n]*(\n|$)|/\*.*?\*/|\()+`)
	sqlWord     = regexp.MustCompile(`^[A-Za-z]+`)
)

// writes is the verb of a statement that begins as those do that change
// something; "" for any other. It only spares people a riddle: the server refuses
// them all.
func writes(sql string) string {
	verb := strings.ToUpper(sqlWord.FindString(sql[len(sqlComments.FindString(sql)):]))
	if slices.Contains(writingVerbs, verb) {
		return verb
	}
	return ""
}
