package otlp

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/almanac-events/almanac/schemas"
)

// partial is what the answer to an export says beside success.
type partial struct {
	records, rejected int64
	first             error // why the first was rejected
	marked            int64 // records that were taken with a name that is not UTF-8
	name              string
}

// record notes what became of a record.
func (p *partial) record(ev *schemas.Event, err error) {
	p.records++
	if err != nil {
		if p.rejected++; p.first == nil {
			p.first = err
		}
		return
	}
	for i := range ev.Attrs {
		if name := ev.Attrs[i].Key; !utf8.ValidString(name) {
			if p.marked++; p.marked == 1 {
				p.name = name
			}
			return
		}
	}
}

// message returns what a client should hear of the records, or "". A client takes any for a warning.
func (p *partial) message(repeated bool, erased []string) string {
	var say []string
	switch {
	case p.rejected > 0:
		say = append(say, fmt.Sprintf("%d of %d log records are refused; the first: %v", p.rejected, p.records, p.first))
	case len(erased) > 0:
		say = append(say, fmt.Sprintf("this request was stored before and is counted once; what the erasure %s took of it since is not stored again: "+
			"send it with another Idempotency-Key to store it again", strings.Join(erased, ", ")))
	case repeated:
		say = append(say, "this request was stored before and is counted once")
	}
	if p.marked > 0 {
		say = append(say, fmt.Sprintf("the attribute names of %d log records are not UTF-8, the first %.64q; they are stored byte by byte, under the mark %s: "+
			"give attributes names in UTF-8", p.marked, p.name, schemas.AttrInvalidUTF8))
	}
	return strings.Join(say, "; ")
}
