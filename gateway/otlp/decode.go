package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
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

// Decode calls each with the event of every log record, or with why it is refused. It is
// pure. Its error says why the request cannot be read at all.
func Decode(body []byte, isJSON bool, each func(ev *schemas.Event, err error)) error {
	req := plogotlp.NewExportRequest()
	var err error
	if isJSON {
		if err = checkJSON(body); err == nil {
			err = req.UnmarshalJSON(body)
		}
	} else {
		if err = checkProto(body); err == nil {
			err = req.UnmarshalProto(body)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRequest, err)
	}
	logs := req.Logs()
	if n := logs.LogRecordCount(); n > MaxRecords {
		return fmt.Errorf("%w: %d, the limit is %d", ErrTooMany, n, MaxRecords)
	}
	for i := range logs.ResourceLogs().Len() {
		rl := logs.ResourceLogs().At(i)
		var shared common
		shared.resource(rl)
		for j := range rl.ScopeLogs().Len() {
			sl := rl.ScopeLogs().At(j)
			both := shared.scope(sl)
			for k := range sl.LogRecords().Len() {
				ev, err := both.event(sl.LogRecords().At(k))
				each(&ev, err)
			}
		}
	}
	return nil
}

// common is what all records of a resource and scope have.
type common struct {
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
	out := common{service: c.service, user: c.user, attrs: c.attrs.clone()}
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
	var attrs attributes
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
		attrs.text("resource.user_id", c.user)
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
	var err error
	ev.Attrs, err = attrs.done()
	return ev, err
}

// isUser says whether an attribute names whom the event is about.
func isUser(name string) bool { return name == "user.id" || name == "enduser.id" || name == "user_id" }

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
	for name, v := range body.Map().All() {
		if name != from {
			attrs.add("body."+name, v)
		}
	}
}

// textOf is a value as text: bytes as base64, lists and maps as JSON.
func textOf(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeBytes:
		return base64.StdEncoding.EncodeToString(v.Bytes().AsRaw())
	case pcommon.ValueTypeMap, pcommon.ValueTypeSlice:
		text, err := json.Marshal(raw(v))
		if err != nil { // a number that is not a number
			return v.AsString()
		}
		return string(text)
	}
	return v.AsString()
}

// raw is a value for encoding/json: numbers that JSON does not have are texts.
func raw(v pcommon.Value) any {
	switch v.Type() {
	case pcommon.ValueTypeMap:
		m := make(map[string]any, v.Map().Len())
		for name, v := range v.Map().All() {
			m[name] = raw(v)
		}
		return m
	case pcommon.ValueTypeSlice:
		s := make([]any, 0, v.Slice().Len())
		for i := range v.Slice().Len() {
			s = append(s, raw(v.Slice().At(i)))
		}
		return s
	case pcommon.ValueTypeDouble:
		if f := v.Double(); math.IsNaN(f) || math.IsInf(f, 0) {
			return v.AsString()
		}
	}
	return v.AsRaw()
}
