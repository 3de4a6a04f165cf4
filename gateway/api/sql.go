package api

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/almanac-events/almanac/gateway/request"
	"github.com/almanac-events/almanac/query"
)

// addSQL adds statements.
func (a *API) addSQL(mux *http.ServeMux) { mux.HandleFunc("POST /v1/sql", a.runSQL) }

// runSQL streams the answer of a statement.
func (a *API) runSQL(w http.ResponseWriter, r *http.Request) {
	if !take(a.sql) {
		request.Fail(w, r, tooMany("statements", maxSQL))
		return
	}
	defer func() { <-a.sql }()
	p := paramsOf(r)
	format := p.text("format")
	if err := p.end(); err != nil {
		request.Fail(w, r, err)
		return
	}
	statement, err := io.ReadAll(http.MaxBytesReader(w, r.Body, sqlBytes))
	if err != nil {
		request.Fail(w, r, request.Refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("a statement may have %d bytes", sqlBytes), ""))
		return
	}
	body, err := a.cfg.Reader.SQL(r.Context(), query.SQLRequest{
		SQL: string(statement), Format: format, User: a.cfg.User, Password: a.cfg.Password,
	})
	if err != nil {
		request.Fail(w, r, refusal(err))
		return
	}
	defer func() { _ = body.Close() }()
	w.Header().Set("Content-Type", "application/octet-stream")
	if format == "" || strings.HasPrefix(format, "JSON") {
		w.Header().Set("Content-Type", "application/json")
	}
	rc := http.NewResponseController(w)
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			_ = rc.SetWriteDeadline(time.Now().Add(writeStall)) // tests have servers without deadlines
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // half an answer must not look whole
		}
	}
}
