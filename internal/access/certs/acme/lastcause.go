package acme

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"unicode"
)

const (
	// maxSaid bounds what is kept of an authority's words.
	maxSaid = 300
	// maxProblem bounds an answer that is looked at for a cause. Those of Let's Encrypt have some kilobytes.
	maxProblem = 64 << 10
)

// lastCause is an http.RoundTripper that keeps why the authority refused last, or could not be reached. For autocert drops why a
// renewal failed.
type lastCause struct {
	next http.RoundTripper

	mu  sync.Mutex
	why string
}

// cause returns it; empty: nothing failed.
func (l *lastCause) cause() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.why
}

func (l *lastCause) keep(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = why
}

// RoundTrip implements http.RoundTripper.
func (l *lastCause) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil {
		l.keep(printable(err.Error()))
		return nil, err
	}
	if !strings.Contains(resp.Header.Get("Content-Type"), "json") {
		return resp, nil
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), failing{err}, resp.Body), resp.Body}
	if why := refusal(resp.StatusCode, head); why != "" {
		l.keep(why)
	}
	return resp, nil
}

// failing reads as nothing, or as the error that a read of what is before it had.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// problem is RFC 8555's: why a request, an order or a challenge failed.
type problem struct {
	Type   string `json:"type"`
	Detail string `json:"detail"`
}

// refusal returns why an answer is a refusal; empty: it is not one. A nonce that is too old is asked for again, and refuses nothing.
func refusal(status int, body []byte) string {
	var said struct {
		problem
		Status     string   `json:"status"`
		Error      *problem `json:"error"`
		Challenges []struct {
			Error *problem `json:"error"`
		} `json:"challenges"`
	}
	_ = json.Unmarshal(body, &said) // what cannot be read says nothing
	switch {
	case status >= http.StatusBadRequest && strings.HasSuffix(said.Type, ":badNonce"):
		return ""
	case status >= http.StatusBadRequest:
		return printable(strings.TrimSpace(fmt.Sprintf("the authority answered %d %s", status, said.Detail)))
	case said.Status != "invalid":
		return ""
	case said.Error != nil:
		return printable("the authority refused: " + said.Error.Detail)
	}
	for _, c := range said.Challenges {
		if c.Error != nil {
			return printable("the authority refused: " + c.Error.Detail)
		}
	}
	return "" // an order, whose authorizations say why
}

// printable bounds words of the authority, which end in a log.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if r := []rune(text); len(r) > maxSaid {
		return string(r[:maxSaid]) + "…"
	}
	return text
}
