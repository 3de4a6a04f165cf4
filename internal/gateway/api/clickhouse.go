package api

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// clickhouseBytes bounds the body of a request: a statement, and tables sent with it.
const clickhouseBytes = 16 << 20

// ClickHouse's numbers for refusals that are the gateway's own.
const (
	tooManyQueries = 202
	networkError   = 210
	settingHeld    = 452
	accessDenied   = 497
)

// addClickHouse adds the interface of ClickHouse's own clients. It is ClickHouse's in
// every answer; accounts that clients name are passed over, for it reads as one.
func (a *API) addClickHouse(on routes) {
	on.serve(&operations.ClickHouse, a.clickhouse)
	on.serve(&operations.ClickHousePost, a.clickhouse)
	on.serve(&operations.ClickHousePing, a.ping)
}

// ping answers as ClickHouse does, by a statement: it shows that the account is let in. All may ask, so it takes no slot of those who read.
func (a *API) ping(w http.ResponseWriter, r *http.Request) {
	free, err := a.pings.Take(request.HolderOf(r))
	if err != nil {
		clickhouseBusy(w, err)
		return
	}
	defer free()
	a.relay(w, r, query.RelayRequest{Params: url.Values{"query": {"SELECT 'Ok.'"}}}, asks{user: a.cfg.User, password: a.cfg.Password})
}

func (a *API) clickhouse(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && !r.URL.Query().Has("query") {
		a.ping(w, r) // as ClickHouse does
		return
	}
	if err := gather(w, r, clickhouseBytes); err != nil {
		clickhouseRefusal(w, http.StatusBadRequest, networkError, err.Error())
		return
	}
	free, err := a.sql.Take(request.HolderOf(r))
	if err != nil {
		clickhouseBusy(w, err)
		return
	}
	defer free()
	as, err := a.asksAs(r)
	if err != nil {
		clickhouseRefusal(w, http.StatusForbidden, accessDenied, err.Error())
		return
	}
	a.relay(w, r, query.RelayRequest{Params: r.URL.Query(), Header: r.Header, Body: http.MaxBytesReader(w, r.Body, clickhouseBytes)}, as)
}

// relay answers with what ClickHouse answers, as it comes.
func (a *API) relay(w http.ResponseWriter, r *http.Request, req query.RelayRequest, as asks) {
	req.User, req.Password = as.user, as.password
	resp, err := a.cfg.Reader.Relay(r.Context(), req)
	switch {
	case errors.Is(err, schemas.ErrRequest):
		clickhouseRefusal(w, http.StatusBadRequest, settingHeld, schemas.Text(err))
		return
	case err != nil:
		clickhouseRefusal(w, http.StatusServiceUnavailable, networkError, err.Error())
		return
	}
	defer func() { _ = resp.Body.Close() }()
	if err := as.missing(exceptionCode(resp.Header)); err != nil {
		clickhouseRefusal(w, http.StatusForbidden, accessDenied, err.Error())
		return
	}
	maps.Copy(w.Header(), relayedAnswer(resp.Header))
	w.WriteHeader(resp.StatusCode)
	pass(w, resp.Body)
}

// pass writes a body as it comes. One that breaks off ends the connection, so that half
// an answer is not taken for a whole one.
func pass(w http.ResponseWriter, body io.Reader) {
	request.Streams(w)
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return
			}
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// clickhouseBusy refuses for now.
func clickhouseBusy(w http.ResponseWriter, err error) {
	clickhouseRefusal(w, http.StatusTooManyRequests, tooManyQueries, err.Error()+"; send the request again in a second")
}

// clickhouseRefusal refuses in ClickHouse's way.
func clickhouseRefusal(w http.ResponseWriter, status, code int, message string) {
	w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
	w.Header().Set("X-ClickHouse-Exception-Code", strconv.Itoa(code))
	if status != http.StatusBadRequest {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, "Code: "+strconv.Itoa(code)+". DB::Exception: "+message+"\n")
}
