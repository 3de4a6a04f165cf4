package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
)

// addSQL adds statements.
func (a *API) addSQL(on routes) {
	on.serve(&operations.SQL, a.runSQL)
	on.serve(&operations.Statement, a.within(a.looks, a.statement))
	on.serve(&operations.CancelStatement, a.within(a.looks, a.cancelStatement))
	on.serve(&operations.SQLSchema, a.read(a.sqlSchema))
}

// sqlSchema lists what the account of who asks may read.
func (a *API) sqlSchema(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := paramsOf(r).end(); err != nil {
		return nil, err
	}
	as, err := a.asksAs(r)
	if err != nil {
		return nil, err
	}
	all, err := a.cfg.Reader.SQLSchema(r.Context(), as.user, as.password)
	if missing := as.missing(notAuthenticated); missing != nil && errors.Is(err, query.ErrAccount) {
		err = missing
	}
	return tableList{all}, err
}

// runSQL streams the answer of a statement.
func (a *API) runSQL(w http.ResponseWriter, r *http.Request) {
	p := paramsOf(r)
	format := p.text("format")
	if err := p.end(); err != nil {
		request.Fail(w, r, err)
		return
	}
	err := gather(w, r, sqlBytes)
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	statement, err := whole(w, r, sqlBytes)
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	free, err := a.sql.Take(request.HolderOf(r)) // after the body came: a slow client must not hold what others need
	if err != nil {
		request.Fail(w, r, busy(err))
		return
	}
	defer free()
	as, err := a.asksAs(r)
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	ctx, one := a.statements.begin(r.Context(), ownerOf(r), request.ID(r))
	body, err := a.cfg.Reader.SQL(ctx, query.SQLRequest{
		SQL: string(statement), Format: format, User: as.user, Password: as.password, ID: request.ID(r),
		Asked: func(id string) { one.asked.Store(&id) }, Began: func(read query.SQLRead) { one.read.Store(&read) },
	})
	if err != nil {
		a.statements.end(one, err)
		if missing := as.missing(notAuthenticated); missing != nil && errors.Is(err, query.ErrAccount) {
			err = missing
		}
		if errors.Is(context.Cause(ctx), errCancelled) {
			err = errCancelled
		}
		if lost := request.Lost(r.Context()); lost != nil {
			err = lost
		}
		request.Fail(w, r, a.refusal(err))
		return
	}
	counted := &countedBody{ReadCloser: body, one: one}
	defer func() {
		_ = body.Close()
		a.statements.end(one, counted.broken)
	}()
	w.Header().Set("Content-Type", contentType(format))
	if read := one.read.Load(); read != nil {
		w.Header().Set(HeaderReadRows, strconv.FormatUint(read.Rows, 10))
		w.Header().Set(HeaderReadBytes, strconv.FormatUint(read.Bytes, 10))
	}
	pass(w, counted)
}

// Headers of the answer to a statement: what ClickHouse had read when the answer began.
const (
	HeaderReadRows  = "Almanac-Read-Rows"
	HeaderReadBytes = "Almanac-Read-Bytes"
)

// contentType is that of a ClickHouse format; the default is JSONEachRow.
func contentType(format string) string {
	switch {
	case format == "", format == "JSONEachRow", format == "JSONCompactEachRow", format == "JSONStringsEachRow":
		return "application/x-ndjson"
	case strings.HasPrefix(format, "JSON"):
		return "application/json"
	case strings.HasPrefix(format, "CSV"):
		return "text/csv; charset=utf-8"
	case strings.HasPrefix(format, "TSV"), strings.HasPrefix(format, "TabSeparated"):
		return "text/tab-separated-values; charset=utf-8"
	case strings.HasPrefix(format, "Pretty"):
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}
