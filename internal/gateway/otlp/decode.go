package otlp

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unsafe"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

const (
	// MaxRecords bounds the log records of one request.
	MaxRecords = 100_000
	// maxAttributes bounds those of a record, and those of a resource with a scope: an event of
	// 64 KiB has room for a third as many, if each takes six bytes. Bytes are bounded once rules
	// have dropped and cut what they do.
	maxAttributes = 1 << 15
)

// Why a request as a whole cannot be read.
var (
	// ErrRequest: the body is not an export request.
	ErrRequest = errors.New("not an OTLP logs request")
	// ErrTooMany: it has more than MaxRecords records.
	ErrTooMany = errors.New("too many log records")
)

// Logs are the log records of a request.
type Logs struct {
	body *body
	n    int
	// bad are records that JSON could not give as they are, by their number from 0.
	bad map[int]error
}

// Parse finds the records of a request. It is pure. Its error says why the request cannot be read
// at all, which Events may find later.
func Parse(raw []byte, isJSON bool) (Logs, error) {
	var bad map[int]error
	if isJSON {
		var err error
		if raw, bad, err = fromJSON(raw); err != nil {
			return Logs{}, fmt.Errorf("%w: %w", ErrRequest, err)
		}
	}
	// The text shares the memory of raw, which is not written to any more: a copy of each body took
	// a tenth of the time.
	logs := Logs{body: &body{raw, unsafe.String(unsafe.SliceData(raw), len(raw))}, bad: bad} //nolint:gosec // as above
	err := eachIn(logs.body.wire(), requestResources, func(resource wire) error {
		return eachIn(resource, scopesOf(resource), func(scope wire) error {
			return eachIn(scope, scopeRecords, func(wire) error {
				logs.n++
				return nil
			})
		})
	})
	switch {
	case err != nil:
		return Logs{}, fmt.Errorf("%w: %w", ErrRequest, err)
	case logs.n > MaxRecords:
		return Logs{}, fmt.Errorf("%w: %d, the limit is %d", ErrTooMany, logs.n, MaxRecords)
	}
	return logs, nil
}

// fromJSON makes protobuf of JSON. bad are the records whose ids are none, which the decoder would refuse all for.
func fromJSON(body []byte) (raw []byte, bad map[int]error, err error) {
	if err := checkJSON(body); err != nil {
		return nil, nil, err
	}
	req := plogotlp.NewExportRequest()
	if err = req.UnmarshalJSON(body); err != nil {
		var fixed []byte
		if fixed, bad = withoutBadIDs(body); len(bad) == 0 {
			return nil, nil, err
		}
		req = plogotlp.NewExportRequest()
		if err = req.UnmarshalJSON(fixed); err != nil {
			return nil, nil, err
		}
	}
	raw, err = req.MarshalProto()
	return raw, bad, err
}

// Len returns how many records there are.
func (l Logs) Len() int { return l.n }

// Events calls each with the event of every record, or with why it is refused; each may
// keep what is in the event, and not its address. It is pure. A nil topic is one without
// fields and rules. Its error says why the request cannot be read at all, or is that of each:
// then nothing that each was called with counts.
func (l Logs) Events(topic *schemas.Topic, each func(ev *schemas.Event, err error) error) error {
	var ev schemas.Event // one for all: each may not keep it
	var r record         // likewise
	var ended error
	number := -1
	err := eachIn(l.body.wire(), requestResources, func(resource wire) error {
		var shared *common
		return eachIn(resource, scopesOf(resource), func(scope wire) error {
			var both *common
			return eachIn(scope, scopeRecords, func(one wire) (err error) {
				if shared == nil {
					if shared, err = newCommon(resource, topic); err != nil {
						return err
					}
				}
				if both == nil { // of scopes that have records alone: others may be millions
					if both, err = shared.scope(scope); err != nil {
						return err
					}
				}
				number++
				switch {
				case both.bad != nil:
					ev, err = schemas.Event{}, both.bad
				case l.bad[number] != nil:
					ev, err = schemas.Event{}, l.bad[number]
				default:
					if err := r.read(one); err != nil {
						return err
					}
					ev, err = both.event(&r)
				}
				if ended = each(&ev, err); ended != nil {
					return ended
				}
				return nil
			})
		})
	})
	switch {
	case ended != nil:
		return ended
	case err != nil:
		return fmt.Errorf("%w: %w", ErrRequest, err)
	}
	return nil
}

func tooMany(what string) error {
	return fmt.Errorf("%w: %s has more than %d", schemas.ErrTooManyAttrs, what, maxAttributes)
}

// common is what all records of a resource and scope have.
type common struct {
	first         func(name string) bool // names that the topic takes first
	service, user string
	attrs         attributes
	bad           error // why none of the records can be taken
}

// newCommon is what a resource gives its records.
func newCommon(resource wire, topic *schemas.Topic) (*common, error) {
	c := &common{first: topic.TakenFirst(), attrs: attributes{topic: topic}}
	content := without(resource, resourceScopes, resourceOldScopes)
	rl, err := decodeResource(content)
	if err != nil {
		return nil, err
	}
	c.service, c.user = ofResource(rl.Resource(), c.attrs.add)
	c.attrs.count("resource.dropped_attributes", rl.Resource().DroppedAttributesCount())
	c.attrs.text("resource.schema_url", rl.SchemaUrl())
	c.limit("its resource")
	return c, nil
}

// scope returns c with what a scope adds.
func (c *common) scope(scope wire) (*common, error) {
	out := *c
	content := without(scope, scopeRecords)
	if out.bad != nil {
		return &out, nil
	}
	sl, err := decodeScope(content)
	if err != nil {
		return nil, err
	}
	out.attrs = c.attrs.clone()
	s := sl.Scope()
	out.attrs.text("scope.name", s.Name())
	out.attrs.text("scope.version", s.Version())
	for name, v := range s.Attributes().All() {
		out.attrs.add("scope."+name, v)
	}
	out.attrs.count("scope.dropped_attributes", s.DroppedAttributesCount())
	out.attrs.text("schema_url", sl.SchemaUrl())
	out.limit("its scope with its resource")
	return &out, nil
}

// limit refuses what no event can have.
func (c *common) limit(what string) {
	if len(c.attrs.list)+len(c.attrs.rest) > maxAttributes {
		c.bad = tooMany(what)
	}
}

// event makes the event of one record.
func (c *common) event(r *record) (schemas.Event, error) {
	switch {
	case r.over:
		return schemas.Event{}, tooMany("it")
	case r.badID != nil:
		return schemas.Event{}, r.badID
	}
	ev := schemas.Event{Service: c.service, UserID: c.user, Type: r.event}
	attrs := attributes{topic: c.attrs.topic}
	if n := len(r.attrs) + len(c.attrs.list); n > 0 {
		attrs.list = make([]schemas.Attr, 0, n)
	}
	ownUser := false
	for i := range r.attrs {
		name, v := r.attrs[i].key, &r.attrs[i].value
		switch {
		case name == "event.name" && ev.Type == "" && v.kind == pcommon.ValueTypeStr:
			ev.Type = v.text
		case isUser(name) && !ownUser:
			ev.UserID, ownUser = v.asText(), true
		default:
			attrs.read(name, v)
		}
	}
	if ownUser && c.user != "" && c.user != ev.UserID {
		attrs.text("resource."+schemas.ColUserID, c.user)
	}
	if err := setTime(&ev, r, &attrs); err != nil {
		return schemas.Event{}, err
	}
	setLevel(&ev, r, &attrs)
	setBody(&ev, &r.body, &attrs)
	if !r.traceID.IsEmpty() {
		ev.TraceID = hex.EncodeToString(r.traceID[:])
	}
	if !r.spanID.IsEmpty() {
		ev.SpanID = hex.EncodeToString(r.spanID[:])
	}
	attrs.count("trace_flags", r.flags)
	attrs.count("dropped_attributes", r.dropped)
	attrs.join(&c.attrs)
	ev.Attrs = attrs.done(c.first)
	return ev, nil
}

// isUser says whether an attribute names whom the event is about.
func isUser(name string) bool { return name == "user.id" || name == "enduser.id" || name == "user_id" }

// namesUser says whether an attribute has a user, wherever it came from: a record, its
// resource or scope, or a map among their attributes.
func namesUser(key string) bool {
	for _, where := range []string{"label.", "resource.", "scope."} {
		key = strings.TrimPrefix(key, where)
	}
	return isUser(key)
}

// setTime takes the time of the record, else when it was observed, else none.
func setTime(ev *schemas.Event, r *record, attrs *attributes) error {
	at, seen := pcommon.Timestamp(r.time), pcommon.Timestamp(r.observed)
	if at > math.MaxInt64 || seen > math.MaxInt64 {
		return fmt.Errorf("%w: a time of %d ns is after the year 2261", schemas.ErrTimeTooFarAhead, max(at, seen))
	}
	switch {
	case at != 0:
		ev.Time = at.AsTime()
		if seen != 0 && seen != at {
			attrs.text("observed_time", seen.AsTime().Format(time.RFC3339Nano))
		}
	case seen != 0:
		ev.Time = seen.AsTime()
	}
	return nil
}

var levels = [...]string{"trace", "debug", "info", "warn", "error", "fatal"}

// setLevel takes the number's range, else the text. What they say beyond the word stays.
func setLevel(ev *schemas.Event, r *record, attrs *attributes) {
	n, text := int(r.severity), r.severityText
	switch {
	case n >= 1 && n <= 24:
		ev.Level = levels[(n-1)/4]
		if (n-1)%4 != 0 {
			attrs.plain(schemas.Int64("severity_number", int64(n)))
		}
		if text != "" && rawjson.Level(text) != ev.Level {
			attrs.text("severity_text", text)
		}
		return
	case n != 0:
		attrs.plain(schemas.Int64("severity_number", int64(n)))
	}
	if ev.Level = rawjson.Level(text); ev.Level != text {
		attrs.text("severity_text", text)
	}
}

// setBody makes the body the message.
func setBody(ev *schemas.Event, v *anyValue, attrs *attributes) {
	if v.kind != pcommon.ValueTypeMap {
		ev.Message = v.asText()
		return
	}
	body, from := v.toPdata(), ""
	for _, name := range []string{"message", "msg"} {
		if v, ok := body.Map().Get(name); ok {
			ev.Message, from = textOf(v), name
			break
		}
	}
	if from == "" {
		ev.Message = textOf(body)
		return
	}
	taken := false
	for name, v := range body.Map().All() {
		if name == from && !taken { // Get returned the first of that name
			taken = true
			continue
		}
		attrs.add("body."+name, v)
	}
}
