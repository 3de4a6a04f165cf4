package otlp

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"

	"github.com/almanac-events/almanac/gateway/fields"
	"github.com/almanac-events/almanac/schemas"
)

// MaxRecords bounds the log records of one request.
const MaxRecords = 100_000

// Why a request as a whole cannot be read.
var (
	// ErrRequest: the body is not an export request.
	ErrRequest = errors.New("not an OTLP logs request")
	// ErrTooMany: it has more than MaxRecords records.
	ErrTooMany = errors.New("too many log records")
)

// Logs are the log records of a request.
type Logs struct{ logs plog.Logs }

// Parse reads a request. It is pure. Its error says why the request cannot be read at all.
func Parse(body []byte, isJSON bool) (Logs, error) {
	req := plogotlp.NewExportRequest()
	var err error
	if isJSON {
		if err = checkJSON(body); err == nil {
			err = req.UnmarshalJSON(body)
		}
	} else {
		if err = checkProto(body, exportRequest); err == nil {
			err = req.UnmarshalProto(body)
		}
	}
	if err != nil {
		return Logs{}, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	logs := Logs{req.Logs()}
	if n := logs.Len(); n > MaxRecords {
		return Logs{}, fmt.Errorf("%w: %d, the limit is %d", ErrTooMany, n, MaxRecords)
	}
	return logs, nil
}

// Len returns how many records there are.
func (l Logs) Len() int { return l.logs.LogRecordCount() }

// Timed reports whether all records have a time.
func (l Logs) Timed() bool {
	for _, rl := range l.logs.ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			for _, r := range sl.LogRecords().All() {
				if r.Timestamp() == 0 && r.ObservedTimestamp() == 0 {
					return false
				}
			}
		}
	}
	return true
}

// Events calls each with the event of every record, or with why it is refused; each may
// keep what is in the event, and not its address. It is pure. A nil topic is one without
// fields and rules.
func (l Logs) Events(topic *schemas.Topic, each func(ev *schemas.Event, err error)) {
	first := topic.TakenFirst()
	var ev schemas.Event // one for all: each may not keep it
	var err error
	for _, rl := range l.logs.ResourceLogs().All() {
		shared := common{first: first, attrs: attributes{topic: topic}}
		shared.resource(rl)
		for _, sl := range rl.ScopeLogs().All() {
			both := shared.scope(sl)
			for _, r := range sl.LogRecords().All() {
				ev, err = both.event(r)
				each(&ev, err)
			}
		}
	}
}

// common is what all records of a resource and scope have.
type common struct {
	first         func(name string) bool // names that the topic takes first
	service, user string
	attrs         attributes
}

func (c *common) resource(rl plog.ResourceLogs) {
	for name, v := range rl.Resource().Attributes().All() {
		switch {
		case name == "service.name" && v.Type() == pcommon.ValueTypeStr:
			c.service = v.Str()
		case isUser(name) && c.user == "":
			c.user = v.AsString()
		default:
			c.attrs.add("resource."+name, v)
		}
	}
	c.attrs.count("resource.dropped_attributes", rl.Resource().DroppedAttributesCount())
	c.attrs.text("resource.schema_url", rl.SchemaUrl())
}

// scope returns c with what a scope adds.
func (c *common) scope(sl plog.ScopeLogs) common {
	out := *c
	out.attrs = c.attrs.clone()
	s := sl.Scope()
	out.attrs.text("scope.name", s.Name())
	out.attrs.text("scope.version", s.Version())
	for name, v := range s.Attributes().All() {
		out.attrs.add("scope."+name, v)
	}
	out.attrs.count("scope.dropped_attributes", s.DroppedAttributesCount())
	out.attrs.text("schema_url", sl.SchemaUrl())
	return out
}

// event makes the event of one record.
func (c *common) event(r plog.LogRecord) (schemas.Event, error) {
	ev := schemas.Event{Service: c.service, UserID: c.user, Type: r.EventName()}
	attrs := attributes{topic: c.attrs.topic}
	if n := r.Attributes().Len() + len(c.attrs.list); n > 0 {
		attrs.list = make([]schemas.Attr, 0, n)
	}
	ownUser := false
	for name, v := range r.Attributes().All() {
		switch {
		case name == "event.name" && ev.Type == "" && v.Type() == pcommon.ValueTypeStr:
			ev.Type = v.Str()
		case isUser(name) && !ownUser:
			ev.UserID, ownUser = v.AsString(), true
		default:
			attrs.add(name, v)
		}
	}
	if ownUser && c.user != "" && c.user != ev.UserID {
		attrs.text("resource."+schemas.ColUserID, c.user)
	}
	if err := setTime(&ev, r, &attrs); err != nil {
		return schemas.Event{}, err
	}
	setLevel(&ev, r, &attrs)
	setBody(&ev, r.Body(), &attrs)
	if id := r.TraceID(); !id.IsEmpty() {
		ev.TraceID = hex.EncodeToString(id[:])
	}
	if id := r.SpanID(); !id.IsEmpty() {
		ev.SpanID = hex.EncodeToString(id[:])
	}
	attrs.count("trace_flags", uint32(r.Flags()))
	attrs.count("dropped_attributes", r.DroppedAttributesCount())
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
func setTime(ev *schemas.Event, r plog.LogRecord, attrs *attributes) error {
	at, seen := r.Timestamp(), r.ObservedTimestamp()
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
func setLevel(ev *schemas.Event, r plog.LogRecord, attrs *attributes) {
	n, text := int(r.SeverityNumber()), r.SeverityText()
	switch {
	case n >= 1 && n <= 24:
		ev.Level = levels[(n-1)/4]
		if (n-1)%4 != 0 {
			attrs.plain(schemas.Int64("severity_number", int64(n)))
		}
		if text != "" && fields.Level(text) != ev.Level {
			attrs.text("severity_text", text)
		}
		return
	case n != 0:
		attrs.plain(schemas.Int64("severity_number", int64(n)))
	}
	if ev.Level = fields.Level(text); ev.Level != text {
		attrs.text("severity_text", text)
	}
}

// setBody makes the body the message.
func setBody(ev *schemas.Event, body pcommon.Value, attrs *attributes) {
	if body.Type() != pcommon.ValueTypeMap {
		ev.Message = textOf(body)
		return
	}
	from := ""
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
