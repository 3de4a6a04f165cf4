package tables

import (
	"bytes"
	"context"
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
}

// FreshTable is the name under which a Select reads its Fresh blocks.
const FreshTable = "_fresh"

// Select runs a read. The caller closes the answer. An error that occurs after
// the first byte shows as a broken answer: see http_write_exception_in_output.
func (db *DB) Select(ctx context.Context, s *Select) (io.ReadCloser, error) {
	q := url.Values{}
	if s.Own {
		q.Set(paramDatabase, db.Database)
	}
	for k, v := range s.Settings {
		q.Set(k, v)
	}
	c := Condition{SQL: s.SQL, Params: s.Params}
	if !s.Own {
		var err error
		if c, err = carried(c); err != nil {
			return nil, fmt.Errorf("a statement for ClickHouse: %w", err)
		}
		setLong(q, c.SQL)
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
	if s.User != "" {
		return db.doAs(req, s.User, s.Password)
	}
	return db.do(req)
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
