package operations

import (
	"net/http"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/access"
)

// Operation is something that can be asked for.
type Operation struct {
	// Method and Path are of its HTTP route.
	Method, Path string
	// Summary is what it does, in one line. Description is what else a caller must know.
	Summary, Description string
	Params               []Param
	// Body is what the request carries; nil: nothing.
	Body *Body
	// Answers are those of success.
	Answers []Answer
	// Refused are its own status codes of refusals, beside those that every operation has (Codes).
	Refused []int
	// Refusal is the type of a refusal; empty: Error.
	Refusal string
	// Right is what the request needs of who asks.
	Right Right
	// Access says what the request does to what is stored.
	Access Access
	// Rows says what a token sees that may read some rows of a topic alone.
	Rows Rows
	// Tool is its name for assistants (POST /mcp); empty: they do not have it.
	Tool string
	// Foreign: parameters and refusals follow the rules of another program, such as ClickHouse.
	Foreign bool
}

// Access is what a request does to what is stored.
type Access int

const (
	// Nothing of what topics hold is read or written.
	Nothing Access = iota
	// Reads is answered with what topics hold, or with what counts it. It is recorded where reads are.
	Reads
	// Writes changes something, and its answer has nothing that the caller did not send.
	Writes
	// ReadsAndWrites changes something, and is answered with what topics hold. The request is recorded without its body.
	ReadsAndWrites
)

// Rows is what a request shows of a topic to a token with a row limit.
type Rows int

const (
	// Undecided is refused to such a token. A test fails where the token has the right to ask.
	Undecided Rows = iota
	// NoRows: it is answered without anything that events hold.
	NoRows
	// LimitedRows: it reads by filters alone, which the limit is added to (filter.ParseWithin).
	LimitedRows
	// AllRows: it cannot be narrowed to rows, and is refused.
	AllRows
)

// Body is what a request carries.
type Body struct {
	// Type names its JSON; empty: it is something else.
	Type string
	// Private: what it says is not recorded where reads are: the ledger alone names whom an erasure names,
	// and payloads are larger than a record.
	Private bool
	// Optional: the request may come without.
	Optional bool
	// Media are the content types; none: application/json.
	Media []string
}

// Answer is one of success.
type Answer struct {
	// Code is the status; 0: any.
	Code int
	// Text says what the code means; empty: OK.
	Text string
	// Type names its JSON; empty: it is none.
	Type string
	// Or names another type that the JSON may have.
	Or string
	// Media are the other content types. An answer without Type and Media is empty.
	Media []string
	// Headers that the answer has.
	Headers []string
}

// Patterns are the route as http.ServeMux takes it. One that ends with a slash is served without it too.
func (o *Operation) Patterns() []string {
	if path, slash := strings.CutSuffix(o.Path, "/"); slash {
		return []string{o.Method + " " + path, o.Method + " " + o.Path + "{$}"}
	}
	return []string{o.Method + " " + o.Path}
}

// Of returns the operation whose route a pattern of http.ServeMux is; nil for none.
func Of(pattern string) *Operation { return byPattern[pattern] }

var byPattern = func() map[string]*Operation {
	known := map[string]*Operation{}
	for _, o := range All {
		for _, pattern := range o.Patterns() {
			known[pattern] = o
		}
	}
	return known
}()

// Param returns the query parameter of a name; nil for none.
func (o *Operation) Param(name string) *Param {
	for i := range o.Params {
		if o.Params[i].Name == name && o.Params[i].In == Query {
			return &o.Params[i]
		}
	}
	return nil
}

// Names are the query parameters in their order.
func (o *Operation) Names() (names []string) {
	for i := range o.Params {
		if o.Params[i].In == Query {
			names = append(names, o.Params[i].Name)
		}
	}
	return names
}

// Codes are the status codes of refusals, in order.
func (o *Operation) Codes() []int {
	var asked []int
	if o.Right.Action != access.Open {
		asked = []int{http.StatusUnauthorized, http.StatusForbidden}
	}
	if o.Foreign {
		return append(asked, o.Refused...)
	}
	codes := append([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusGatewayTimeout}, o.Refused...)
	codes = append(codes, asked...)
	if o.Body != nil {
		codes = append(codes, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge)
	}
	if o.Access == Writes || o.Access == ReadsAndWrites {
		codes = append(codes, http.StatusInsufficientStorage)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func ok(answer string) []Answer { return []Answer{{Code: http.StatusOK, Type: answer}} }

func accepted(answer string) Answer { return Answer{Code: http.StatusAccepted, Type: answer} }

func sends(body string) *Body { return &Body{Type: body} }
