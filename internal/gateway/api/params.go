package api

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// bodyBytes bounds the JSON of a request that begins a job.
const bodyBytes = 1 << 20

// params reads the parameters of a request. The first that is wrong is the error of end.
type params struct {
	r     *http.Request
	q     url.Values
	known []string
	err   error
	// cursor is that of the page before, and read the moment from which times are read: of the
	// first page.
	cursor string
	read   time.Time
}

func paramsOf(r *http.Request) *params {
	p := &params{r: r, q: r.URL.Query()}
	p.cursor, p.read = query.UnpinCursor(p.q.Get("cursor"), time.Now())
	return p
}

// after reads where the page begins.
func (p *params) after() string {
	p.text("cursor")
	return p.cursor
}

// next returns the cursor of the next page as clients get it.
func (p *params) next(cursor string) string { return query.PinCursor(cursor, p.read) }

func (p *params) text(name string) string {
	p.known = append(p.known, name)
	if len(p.q[name]) > 1 && p.err == nil {
		p.err = bad(name, strings.Join(p.q[name], " and "), "one value")
	}
	return p.q.Get(name)
}

// texts reads a parameter that may be given several times.
func (p *params) texts(name string) []string {
	p.known = append(p.known, name)
	return p.q[name]
}

// bad remembers a parameter that is wrong.
func (p *params) bad(name, want string) {
	if p.err == nil {
		p.err = bad(name, p.q.Get(name), want)
	}
}

func bad(name, text, want string) error {
	return request.Refuse(http.StatusBadRequest, "bad_parameter", fmt.Sprintf("parameter %s is %q, it must be %s", name, text, want), "")
}

// number reads a whole number; 0 where it is not given.
func (p *params) number(name string, lo, hi int) int {
	text := p.text(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < lo || n > hi {
		p.bad(name, fmt.Sprintf("%d to %d", lo, hi))
	}
	return n
}

// token reads the token of a lock; 0 where it is not given.
func (p *params) token(name string) uint64 {
	text := p.text(name)
	if !p.q.Has(name) {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 { // an empty one too: a worker must not write without its guard
		p.bad(name, "the token of a lock, such as 1234")
	}
	return n
}

// time reads a point in time as the flags of the verbs are read.
func (p *params) time(name string) time.Time { return p.moment(name, query.ParseTime) }

// until reads the time at which a range ends.
func (p *params) until(name string) time.Time { return p.moment(name, query.ParseEnd) }

func (p *params) moment(name string, parse func(string, time.Time) (time.Time, error)) time.Time {
	t, err := parse(p.text(name), p.read)
	if err != nil {
		p.bad(name, "RFC 3339, a date, now, or a distance back such as -15m")
	}
	return t
}

// span reads a length of time; 0 where it is not given.
func (p *params) span(name string) time.Duration {
	text := p.text(name)
	if text == "" {
		return 0
	}
	d, ok := schemas.ParseSpan(text)
	if !ok || d <= 0 {
		p.bad(name, "a length of time such as 1m")
	}
	return d
}

// yes reads a switch: the name alone is true.
func (p *params) yes(name string) bool {
	text := p.text(name)
	switch {
	case !p.q.Has(name), text == "false":
		return false
	case text == "", text == "true":
		return true
	}
	p.bad(name, "true or false")
	return false
}

// word reads one of some words; the first where it is not given.
func (p *params) word(name string, words ...string) string {
	text := p.text(name)
	if text == "" {
		return words[0]
	}
	if !slices.Contains(words, text) {
		p.bad(name, strings.Join(words, " or "))
	}
	return text
}

// names are the fields between commas, but for those within brackets.
func (p *params) names(name string) []string { return query.SplitNames(p.text(name)) }

// end returns the first fault, and refuses parameters that the route does not have.
func (p *params) end() error {
	if p.err != nil {
		return p.err
	}
	for name := range p.q {
		if !slices.Contains(p.known, name) {
			hint := "this route takes no parameters"
			if len(p.known) > 0 {
				hint = "this route takes " + strings.Join(p.known, ", ")
			}
			return request.Refuse(http.StatusBadRequest, "unknown_parameter", fmt.Sprintf("parameter %q is not known here", name), hint)
		}
	}
	return nil
}

// body reads a request's JSON. Members that are not known are refused.
func body(w http.ResponseWriter, r *http.Request, into any) error {
	return bodyWithin(w, r, bodyBytes, into)
}

// bodyWithin is body within another bound.
func bodyWithin(w http.ResponseWriter, r *http.Request, limit int64, into any) error {
	in := request.Pace(w, r)
	defer func() { _ = in.Close() }()
	d := json.NewDecoder(http.MaxBytesReader(w, in, limit))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); errors.Is(more, io.EOF) {
			return nil
		}
		err = errors.New("something follows the object")
	}
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return tooLarge(limit)
	}
	if broken := in.Broken(); broken != nil {
		return broken
	}
	return request.Refuse(http.StatusBadRequest, "bad_json", "the body is not the JSON that is expected: "+err.Error(), "/openapi.yaml says what is")
}

func tooLarge(limit int64) error {
	return request.Refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the request may have %d bytes", limit), "")
}

// whole reads a request's body as it is.
func whole(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	in := request.Pace(w, r)
	defer func() { _ = in.Close() }()
	data, err := io.ReadAll(http.MaxBytesReader(w, in, limit))
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return nil, tooLarge(limit)
	}
	return data, cmp.Or(in.Broken(), err)
}
