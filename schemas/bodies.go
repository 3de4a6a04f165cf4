package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// How long the bodies of an event may be. Two of MaxBodyLimit and the other fields fit into
// MaxEventBytes.
const (
	DefaultBodyLimit = 16 << 10
	MaxBodyLimit     = 28 << 10
	// minBodyLimit holds the mark of a body that was cut.
	minBodyLimit = 128
)

// Omitted is what stands in for a body that is longer than its topic takes.
type Omitted struct {
	Bytes  int64  `json:"omitted_bytes"`
	SHA256 string `json:"sha256"` // of the text as it came, after privacy rules
}

// ParseOmitted reads what stands in for a body; false for a body that is there.
func ParseOmitted(body string) (o Omitted, ok bool) {
	if !strings.HasPrefix(body, `{"omitted_bytes":`) || len(body) > minBodyLimit {
		return o, false
	}
	ok = json.Unmarshal([]byte(body), &o) == nil && len(o.SHA256) == 2*sha256.Size
	return o, ok
}

// bodyLimit is the longest body that events of the topic keep.
func (t *Topic) bodyLimit() int {
	if t.BodyLimit > 0 {
		return int(min(t.BodyLimit, math.MaxInt32))
	}
	return DefaultBodyLimit
}

// checkBodyLimit reports what is wrong with body_limit.
func (t *Topic) checkBodyLimit() error {
	if n := t.bodyLimit(); n < minBodyLimit || n > MaxBodyLimit {
		return fmt.Errorf("body_limit is %d, it must be %d to %d bytes", n, minBodyLimit, MaxBodyLimit)
	}
	return nil
}

// CutBodies notes how long the bodies of an event are, and puts Omitted in the place of
// those that are longer than the topic's limit. The attributes that the event was given
// stay as they are: it gets others. The error is ErrValue, for a long body that is not JSON.
func (t *Topic) CutBodies(e *Event) error {
	for _, b := range t.Spec().Bodies {
		i := t.bodyAt(e, b)
		if i < 0 || e.Attrs[i].str == "" {
			continue
		}
		n := len(e.Attrs[i].str)
		if _, _, noted := t.valueOf(e, b.Bytes); noted && n <= t.bodyLimit() {
			continue
		}
		mark := ""
		if n > t.bodyLimit() {
			var err error
			if mark, err = omit(b.Column, []byte(e.Attrs[i].str)); err != nil {
				return err
			}
		}
		e.Attrs = withBody(e.Attrs, i, mark, Int64(b.Bytes, int64(n)))
	}
	return nil
}

// bodyAt is the index of the attribute with a body, -1 when there is none.
func (t *Topic) bodyAt(e *Event, b kinds.Body) int {
	f := t.field(b.Column)
	for i := range e.Attrs {
		if e.Attrs[i].kind == KindString && t.Fields[f].Takes(e.Attrs[i].Key) {
			return i
		}
	}
	return -1
}

// withBody copies attributes, with the mark in place of the body unless it is empty, and with
// the body's length. They get texts of their own, or the compiler would have every event's
// attributes allocated, bodies or not.
func withBody(attrs []Attr, body int, mark string, length Attr) []Attr {
	out := make([]Attr, 0, len(attrs)+1)
	for i := range attrs {
		switch {
		case attrs[i].Key == length.Key:
		case i == body && mark != "":
			out = append(out, String(strings.Clone(attrs[i].Key), mark))
		default:
			out = append(out, attrs[i].Clone())
		}
	}
	return append(out, length)
}

// omit makes the mark of a body.
func omit(column string, data []byte) (string, error) {
	if !json.Valid(data) {
		return "", fmt.Errorf("%w: %s has %d bytes that are not JSON", ErrValue, column, len(data))
	}
	sum := sha256.Sum256(data)
	mark, err := json.Marshal(Omitted{int64(len(data)), hex.EncodeToString(sum[:])})
	return string(mark), err
}
