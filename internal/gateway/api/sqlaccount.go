package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// notAuthenticated is ClickHouse's number for an account that it does not have, or that has another password.
const notAuthenticated = 516

// asks is the account that a statement is asked by.
type asks struct {
	user, password string
	topics         []string // that it reads alone; nil: all
}

// asksAs returns the account that who asks has for statements: the reader's, or one that reads some topics alone. No request falls
// back to the reader.
func (a *API) asksAs(r *http.Request) (asks, error) {
	reader := asks{user: a.cfg.User, password: a.cfg.Password}
	if a.cfg.Anyone {
		return reader, nil
	}
	who := access.From(r.Context())
	topics, everything := who.SQLTopics()
	switch {
	case everything:
		return reader, nil
	case !a.cfg.TopicSQL:
		_ = who.Refused(&access.Denied{Name: who.Name, Action: access.SQL, Roles: []access.Role{access.RoleSQL}}) // counted as one
		return asks{}, request.Refuse(http.StatusForbidden, "no_account",
			"SQL of some topics needs a ClickHouse server of its own: in the one that `up` runs, a statement may read the files of all topics",
			"ask with a token that has sql for all topics, or read over HTTP what the token may read; SECURITY.md says why")
	}
	u := access.SQLAccount(topics)
	return asks{u.Name, access.SQLPassword(a.cfg.Password, u.Name), topics}, nil
}

// missing is the refusal where ClickHouse does not know the account of some topics; nil: it is another error.
func (s *asks) missing(code int) error {
	if len(s.topics) == 0 || code != notAuthenticated {
		return nil
	}
	return request.Refuse(http.StatusForbidden, "no_account", "ClickHouse does not have the account "+s.user+", which asks SQL of "+strings.Join(s.topics, ", "),
		"put what `almanac config clickhouse` prints into the server's users.d: it has an account for the topics of each token")
}

// exceptionCode is ClickHouse's number for why a relayed request failed; 0: it did not.
func exceptionCode(h http.Header) int {
	n, _ := strconv.Atoi(h.Get("X-ClickHouse-Exception-Code"))
	return n
}
