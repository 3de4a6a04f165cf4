package tables

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
)

// Select is a read whose answer is streamed as ClickHouse formats it.
type Select struct {
	SQL string
	// Params fill {name:Type} placeholders; values as the HTTP interface wants
	// them (see query/filter).
	Params map[string]string
	// Settings of this statement, such as limits.
	Settings map[string]string
	// Fresh are blocks the statement may read as the table _fresh, decompressed
	// Native, and FreshStructure their columns.
	Fresh          [][]byte
	FreshStructure string
	// User and Password, when set, are used instead of the connection's own.
	User, Password string
	// Own: the statement is a person's own, and names tables without their database.
	Own bool
	// ID is the statement's query_id; empty: ClickHouse gives it one.
	ID string
	// Began, when set, hears what ClickHouse had read when the answer began.
	Began func(Read)

	changes bool
}

// Read is what ClickHouse read for a statement.
type Read struct {
	Rows  uint64 `json:"read_rows,string"`
	Bytes uint64 `json:"read_bytes,string"`
}

// FreshTable is the name under which a Select reads its Fresh blocks.
const FreshTable = "_fresh"

// Select runs a read. The caller closes the answer. An error that occurs after
// the first byte shows as a broken answer: see http_write_exception_in_output.
func (db *DB) Select(ctx context.Context, s *Select) (io.ReadCloser, error) {
	q := url.Values{}
	if !s.changes { // who goes away ends ClickHouse's work too, which it allows of what only reads (2: and may be shaped by settings)
		q.Set("readonly", "2")
		q.Set("cancel_http_readonly_queries_on_client_close", "1")
	}
	if s.Own {
		q.Set(paramDatabase, db.Database)
	}
	if s.ID != "" {
		q.Set(paramQueryID, s.ID)
	}
	for k, v := range s.Settings {
		q.Set(k, v)
	}
	c := Condition{SQL: s.SQL, Params: s.Params}
	if !s.Own {
		var err error
		if c, err = carried(q, c); err != nil {
			return nil, fmt.Errorf("a statement for ClickHouse: %w", err)
		}
	}
	setParams(q, c.Params)
	var body io.Reader = strings.NewReader(c.SQL)
	contentType := "text/plain; charset=utf-8"
	if s.FreshStructure != "" {
		q.Set(FreshTable+"_format", "Native")
		q.Set(FreshTable+"_structure", s.FreshStructure)
		inForm := c.SQL
		if len(c.SQL) <= maxAddressBytes {
			q.Set(paramQuery, c.SQL)
			inForm = ""
		}
		var err error
		if body, contentType, err = freshBody(inForm, s.Fresh); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, db.base+"/?"+q.Encode(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", contentType)
	user, password := db.user, db.pass
	if s.User != "" {
		user, password = s.User, s.Password
	}
	resp, err := db.answered(req, user, password)
	if err != nil {
		return nil, err
	}
	if s.Began != nil {
		var read Read
		if json.Unmarshal([]byte(resp.Header.Get("X-ClickHouse-Summary")), &read) == nil {
			s.Began(read)
		}
	}
	return resp.Body, nil
}

// freshBody is a form with the blocks as the file FreshTable, which is how ClickHouse's HTTP
// interface takes a table along with a statement. A statement that is too long for the address is in
// the form too: ClickHouse joins all fields of that name.
func freshBody(statement string, blocks [][]byte) (io.Reader, string, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for len(statement) > 0 {
		n := min(len(statement), pieceBytes)
		if err := w.WriteField(paramQuery, statement[:n]); err != nil {
			return nil, "", fmt.Errorf("a long statement: %w", err)
		}
		statement = statement[n:]
	}
	part, err := w.CreateFormFile(FreshTable, FreshTable)
	if err != nil {
		return nil, "", fmt.Errorf("fresh events: %w", err)
	}
	for _, block := range blocks {
		if _, err := part.Write(block); err != nil {
			return nil, "", fmt.Errorf("fresh events: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", fmt.Errorf("fresh events: %w", err)
	}
	return &b, w.FormDataContentType(), nil
}
