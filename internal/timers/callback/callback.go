package callback

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/almanac-events/almanac/schemas/timer"
)

// ErrAborted: the call's context ended before its answer came. It is not known whether the server acted.
var ErrAborted = errors.New("the call was given up: its dispatcher is ending")

// Config of a Caller.
type Config struct {
	// AllowCIDRs are addresses and ports that may be called although they are private. They are the
	// operator's.
	AllowCIDRs []Range
	// Secrets sign callbacks, by the name that a group gives.
	Secrets Secrets
	// Resolver for names; nil: the system's.
	Resolver *net.Resolver
	// PerHost bounds the connections to one host and port; 0: without a bound, for one whose calls are
	// bounded already. Give what bounds the calls (dispatch.Config.PerHost).
	PerHost int
}

// Bounds of connections.
const (
	// connectTimeout is of a connection, and again of its TLS: who does not answer by then is not there.
	connectTimeout = 10 * time.Second
	maxIdle        = 256
	idleTimeout    = 30 * time.Second
	maxHeaderBytes = 16 << 10
)

// Caller calls timers back. It is safe for concurrent use.
type Caller struct {
	cfg    Config
	client *http.Client
}

// New makes a caller with connections of its own.
func New(cfg Config) *Caller {
	guard := newGuard(cfg.AllowCIDRs)
	dialer := &net.Dialer{Timeout: connectTimeout, Control: guard.control, Resolver: cfg.Resolver}
	return &Caller{cfg: cfg, client: &http.Client{
		Transport: &http.Transport{
			Proxy:                  nil, // never the environment's
			DialContext:            dialer.DialContext,
			DisableCompression:     true,
			MaxConnsPerHost:        cfg.PerHost,
			MaxIdleConnsPerHost:    cmp.Or(cfg.PerHost, maxIdle),
			MaxIdleConns:           maxIdle,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
			TLSHandshakeTimeout:    connectTimeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Close ends idle connections.
func (c *Caller) Close() { c.client.CloseIdleConnections() }

// Call makes the attempt that a claimed record describes, and reads its answer. It returns ErrAborted if
// ctx ends first.
func (c *Caller) Call(ctx context.Context, g *timer.Group, r *timer.Record, s *timer.Spec) (timer.Outcome, timer.Call, error) {
	began := time.Now()
	v, detail := c.call(ctx, g, r, s, began)
	if ctx.Err() != nil && v.Kind != timer.Success {
		return v, timer.Call{}, ErrAborted
	}
	call := timer.Call{Status: v.Status, Error: v.Error, Detail: detail, Took: time.Since(began)}
	return v, call, nil
}

func (c *Caller) call(ctx context.Context, g *timer.Group, r *timer.Record, s *timer.Spec, now time.Time) (timer.Outcome, string) {
	if err := timer.CheckURL(s.URL, g.AllowHosts); err != nil {
		return timer.Outcome{Kind: timer.Fail, Error: timer.ErrHost}, err.Error()
	}
	ctx, cancel := context.WithTimeout(ctx, g.TimeoutOf(s))
	defer cancel()
	req, err := c.request(ctx, g, r, s, now)
	if err != nil {
		return timer.Outcome{Kind: timer.TryAgain, Error: timer.ErrSecret}, err.Error()
	}
	resp, err := c.client.Do(req)
	if err != nil {
		v := classifyError(req.URL.Hostname(), err)
		return v, details[v.Error]
	}
	defer func() { _ = resp.Body.Close() }()
	return c.answer(g, req.URL.Hostname(), resp, now)
}

// answer reads a response's body, at most MaxAnswerBytes of it, and says what it means.
func (c *Caller) answer(g *timer.Group, host string, resp *http.Response, now time.Time) (timer.Outcome, string) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, timer.MaxAnswerBytes+1))
	detail := ""
	if g.KeepDetail {
		detail = string(bytes.ToValidUTF8(body[:min(len(body), timer.DetailBytes)], nil))
	}
	v := timer.Classify(g.Answer, resp.StatusCode, resp.Header, body, now.UnixNano())
	if resp.StatusCode != http.StatusOK || v.Kind == timer.Success && g.Answer != timer.AnswerJSON {
		return v, detail // the status says all
	}
	switch {
	case err != nil:
		cut := classifyError(host, err)
		if cut.Error == timer.ErrUnreachable {
			cut.Error = timer.ErrAnswerCut
		}
		cut.Status = resp.StatusCode
		return cut, detail
	case len(body) > timer.MaxAnswerBytes:
		return timer.Outcome{Kind: timer.TryAgain, Status: resp.StatusCode, Error: timer.ErrAnswerSize}, detail
	}
	return v, detail
}
