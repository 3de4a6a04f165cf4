package lines

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/patterns"
)

// What a client asks to be answered after.
const (
	ackNone   = "none"
	ackStream = "stream"
	ackStored = "stored"
)

// options are the parameters of one request.
type options struct {
	intake.Options
	ack       string
	refuseAll bool
}

// maxPattern bounds a regular expression: it is compiled for every request.
const maxPattern = 1000

// known are the parameters; another one is a mistake that must not pass in silence.
var known = operations.SendEvents.Names()

// readOptions reads the parameters, which are the options of `almanac send`.
func readOptions(q url.Values, now time.Time) (o options, err error) {
	p := params{q: q}
	if q.Has("atomic") {
		return o, errAtomic
	}
	for name := range q {
		if !slices.Contains(known, name) {
			return o, bad("unknown parameter "+name, "there are "+strings.Join(known, ", "))
		}
	}
	o.ack = p.word("ack", ackStream)
	o.refuseAll = p.word("refuse", "lines") == "all"
	o.Options = intake.Options{
		Format:    p.word("format", ""),
		Multiline: p.regex("multiline"), TsField: q.Get("ts_field"), TsFormat: q.Get("ts_format"), RequireTime: p.truth("require_ts"),
		Untimed:  q.Has("require_ts") && !p.truth("require_ts"),
		Location: p.zone("tz"), Year: p.number("year"), Now: now,
		UserField: q.Get("user_field"), UserRegex: p.regex("user_regex"), Extract: p.regex("extract"), DropRaw: p.truth("drop_raw"),
		Delimiter: p.rune("delimiter"), Service: q.Get("service"), Type: q.Get("type"), Level: q.Get("level"),
	}
	return o, p.err
}

// errAtomic refuses what a request of lines cannot have: its frames are of several lanes and months, each stored alone.
var errAtomic = request.Refuse(http.StatusBadRequest, "not_atomic", "the lines of a request are stored in frames of their lanes and months, each alone: nothing makes them all or none",
	"with refuse=all one that is refused refuses all, and under an Idempotency-Key the request is sent again until all are there, each once; documents have POST /v1/documents/TOPIC/batch")

func bad(message, hint string) error {
	return request.Refuse(http.StatusBadRequest, "bad_parameter", message, hint)
}

// params reads parameters and keeps the first error.
type params struct {
	q   url.Values
	err error
}

func (p *params) fail(name, format string, a ...any) {
	if p.err == nil {
		p.err = bad(fmt.Sprintf("parameter %s: ", name)+fmt.Sprintf(format, a...), "")
	}
}

// word reads one of the declared words.
func (p *params) word(name, def string) string {
	v, words := p.q.Get(name), operations.SendEvents.Param(name).Words
	if v == "" {
		return def
	}
	if !slices.Contains(words, v) {
		p.fail(name, "%q is not one of: %s", v, strings.Join(words, ", "))
	}
	return v
}

func (p *params) regex(name string) *regexp.Regexp {
	v := p.q.Get(name)
	if v == "" {
		return nil
	}
	if len(v) > maxPattern {
		p.fail(name, "it has %d bytes, the limit is %d", len(v), maxPattern)
		return nil
	}
	re, err := patterns.Compile(v)
	if err != nil {
		p.fail(name, "%v", err)
	}
	return re
}

func (p *params) truth(name string) bool {
	if !p.q.Has(name) {
		return false
	}
	v := p.q.Get(name)
	b, err := strconv.ParseBool(v)
	if v == "" {
		return true // ?require_ts alone
	}
	if err != nil {
		p.fail(name, "%q is neither true nor false", v)
	}
	return b
}

func (p *params) number(name string) int {
	v := p.q.Get(name)
	if v == "" {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		p.fail(name, "%q is not a number", v)
	}
	return n
}

func (p *params) zone(name string) *time.Location {
	v := p.q.Get(name)
	if v == "" {
		return time.UTC
	}
	z, err := time.LoadLocation(v)
	if err != nil {
		p.fail(name, "%q is not a zone such as Europe/Berlin", v)
	}
	return z
}

// rune reads one character, or \t or tab.
func (p *params) rune(name string) rune {
	v := p.q.Get(name)
	switch v {
	case "":
		return 0
	case `\t`, "tab":
		return '\t'
	}
	r, n := utf8.DecodeRuneInString(v)
	if n != len(v) {
		p.fail(name, "%q is not one character", v)
	}
	return r
}
