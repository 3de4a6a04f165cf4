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
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// bodyBytes bounds the JSON of a request that begins a job.
const bodyBytes = 1 << 20

// params reads the parameters that the operation of a request declares: their types, words and bounds are from
// there. The first that is wrong is the error of end.
type params struct {
	r   *http.Request
	op  *operations.Operation
	q   url.Values
	out []string // declared, and not taken beside what was given
	err error
	// cursor is that of the page before, and read the moment from which times are read: of the
	// first page.
	cursor string
	read   time.Time
}

func paramsOf(r *http.Request) *params {
	p := &params{r: r, op: operations.Of(r.Pattern), q: r.URL.Query()}
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

// declared is a parameter of the operation. One that is read as what it is not is a fault of the program.
func (p *params) declared(name string, kind operations.Kind) *operations.Param {
	d := p.op.Param(name)
	if d == nil || d.Kind != kind {
		panic(fmt.Sprintf("api: %s %s does not declare parameter %s as it is read", p.op.Method, p.op.Path, name))
	}
	return d
}

// without refuses parameters that do not go with what was given.
func (p *params) without(names ...string) { p.out = append(p.out, names...) }

// text reads any text.
func (p *params) text(name string) string {
	p.declared(name, operations.Text)
	return p.one(name)
}

// one is the value of a parameter that is given once.
func (p *params) one(name string) string {
	if len(p.q[name]) > 1 && p.err == nil {
		p.err = bad(name, strings.Join(p.q[name], " and "), "one value")
	}
	return p.q.Get(name)
}

// texts reads a parameter that may be given several times.
func (p *params) texts(name string) []string {
	p.declared(name, operations.Texts)
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
func (p *params) number(name string) int {
	d := p.declared(name, operations.Number)
	text := p.one(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < d.Least || n > d.Most {
		p.bad(name, fmt.Sprintf("%d to %d", d.Least, d.Most))
	}
	return n
}

// token reads the token of a lock; 0 where it is not given.
func (p *params) token(name string) uint64 {
	p.declared(name, operations.Token)
	text := p.one(name)
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
func (p *params) time(name string) time.Time { return p.moment(name, operations.Time, query.ParseTime) }

// until reads the time at which a range ends.
func (p *params) until(name string) time.Time { return p.moment(name, operations.End, query.ParseEnd) }

func (p *params) moment(name string, kind operations.Kind, parse func(string, time.Time) (time.Time, error)) time.Time {
	p.declared(name, kind)
	t, err := parse(p.one(name), p.read)
	if err != nil {
		p.bad(name, "RFC 3339, a date, now, or a distance back such as -15m")
	}
	return t
}

// span reads a length of time; 0 where it is not given.
func (p *params) span(name string) time.Duration {
	p.declared(name, operations.Span)
	text := p.one(name)
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
	p.declared(name, operations.Switch)
	text := p.one(name)
	switch {
	case !p.q.Has(name), text == "false":
		return false
	case text == "", text == "true":
		return true
	}
	p.bad(name, "true or false")
	return false
}

// word reads one of the declared words; the first where it is not given.
func (p *params) word(name string) string {
	words := p.declared(name, operations.Word).Words
	text := p.one(name)
	if text == "" {
		return words[0]
	}
	if !slices.Contains(words, text) {
		p.bad(name, strings.Join(words, " or "))
	}
	return text
}

// names are the fields between commas, but for those within brackets.
func (p *params) names(name string) []string {
	p.declared(name, operations.Names)
	return query.SplitNames(p.one(name))
}

// end returns the first fault, and refuses parameters that the route does not have.
func (p *params) end() error {
	if p.err != nil {
		return p.err
	}
	known := slices.DeleteFunc(p.op.Names(), func(name string) bool { return slices.Contains(p.out, name) })
	for name := range p.q {
		if !slices.Contains(known, name) {
			hint := "this route takes no parameters"
			if len(known) > 0 {
				hint = "this route takes " + strings.Join(known, ", ")
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
