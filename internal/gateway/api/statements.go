package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/query"
)

// keptStatements is how many that ended are still known, so that what they took can be asked for.
const keptStatements = 64

// statements are those that this process runs, and the last that ended.
type statements struct {
	mu  sync.Mutex
	all []*statement // the oldest first
}

// statement is one of someone's, by the id of its request.
type statement struct {
	owner, id string
	began     time.Time
	stop      context.CancelCauseFunc
	asked     atomic.Pointer[string] // the id that ClickHouse knows it by
	read      atomic.Pointer[query.SQLRead]
	bytes     atomic.Uint64

	ended time.Time // of statements.mu; zero: it runs
	err   error
}

// StatementState says how a statement is.
type StatementState string

// The states of a statement.
const (
	statementRuns      StatementState = "running"
	statementDone      StatementState = "done"
	statementFailed    StatementState = "failed"
	statementCancelled StatementState = "cancelled"
)

// Statement is how far a statement is.
type Statement struct {
	ID      string         `json:"id"`
	State   StatementState `json:"state"`
	BeganAt time.Time      `json:"began_at"`
	Elapsed float64        `json:"elapsed_seconds"`
	// AnswerBytes are those of the answer so far.
	AnswerBytes uint64 `json:"answer_bytes"`
	// Progress is how far ClickHouse is; none where it does not run the statement now, or does not say so at once.
	Progress *query.SQLProgress `json:"progress,omitempty"`
	// Read is what ClickHouse had read when the answer began: all of it, where rows come only at the end.
	Read *query.SQLRead `json:"read,omitempty"`
}

// progressWait is how long ClickHouse is asked how far a statement is: what else is known is not held up for long by a server that
// is busy with it.
const progressWait = 2 * time.Second

var (
	errCancelled   = request.Refuse(http.StatusConflict, "cancelled", "the statement was cancelled", "")
	errNoStatement = request.Refuse(http.StatusNotFound, "no_such_statement", "this gateway runs no statement of yours with that id, nor did of late",
		"the id is the X-Request-Id of the request, and another gateway may have it")
)

// begin notes a statement. end must be called when it has ended.
func (s *statements) begin(ctx context.Context, owner, id string) (context.Context, *statement) {
	one := &statement{owner: owner, id: id, began: time.Now()}
	ctx, one.stop = context.WithCancelCause(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) >= keptStatements {
		if i := slices.IndexFunc(s.all, func(old *statement) bool { return !old.ended.IsZero() }); i >= 0 {
			s.all = slices.Delete(s.all, i, i+1)
		}
	}
	s.all = append(s.all, one)
	return ctx, one
}

func (s *statements) end(one *statement, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one.ended.IsZero() { // the first to say why it ends is right
		one.ended, one.err = time.Now(), err
	}
	one.stop(err)
}

// ownerOf returns whose statements a request begins and looks at: those of its token, or of the clients without one at its address,
// which is all that tells them apart.
func ownerOf(r *http.Request) string {
	if name := access.From(r.Context()).Name; name != "" {
		return name
	}
	host, _, _ := net.SplitHostPort(r.RemoteAddr)
	return "\x00" + host // no token has such a name
}

// find returns the newest statement of an owner with an id.
func (s *statements) find(owner, id string) (*statement, Statement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range slices.Backward(s.all) {
		if one.owner != owner || one.id != id {
			continue
		}
		v := Statement{ID: id, State: statementRuns, BeganAt: one.began.UTC(), AnswerBytes: one.bytes.Load(), Read: one.read.Load()}
		until := one.ended
		switch {
		case until.IsZero():
			until = time.Now()
		case errors.Is(one.err, errCancelled):
			v.State = statementCancelled
		case one.err != nil:
			v.State = statementFailed
		default:
			v.State = statementDone
		}
		v.Elapsed = until.Sub(one.began).Seconds()
		return one, v, nil
	}
	return nil, Statement{}, errNoStatement
}

// statement answers how far one of one's own statements is.
func (a *API) statement(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := paramsOf(r).end(); err != nil {
		return nil, err
	}
	one, v, err := a.statements.find(ownerOf(r), r.PathValue("id"))
	if err != nil || v.State != statementRuns {
		return v, err
	}
	if id := one.asked.Load(); id != nil {
		ctx, cancel := context.WithTimeout(r.Context(), progressWait)
		defer cancel()
		if p, err := a.cfg.Reader.SQLProgress(ctx, *id); err == nil {
			v.Progress = p
		}
	}
	return v, nil
}

// cancelStatement ends one of one's own statements, and ClickHouse's work for it.
func (a *API) cancelStatement(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := paramsOf(r).end(); err != nil {
		return nil, err
	}
	owner := ownerOf(r)
	one, _, err := a.statements.find(owner, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	a.statements.end(one, errCancelled)
	_, v, err := a.statements.find(owner, one.id)
	return v, err
}

// countedBody counts the bytes of an answer, and keeps why it broke off.
type countedBody struct {
	io.ReadCloser
	one    *statement
	broken error
}

// Read implements io.Reader.
func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.one.bytes.Add(uint64(max(n, 0)))
	if err != nil && err != io.EOF {
		c.broken = err
	}
	return n, err
}
