package otlp

import (
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of opentelemetry.proto.logs.v1 and common.v1, as they are read here.
const (
	requestResources = 1 // ExportLogsServiceRequest.resource_logs
	resourceScopes   = 2 // ResourceLogs.scope_logs
	// resourceOldScopes is what old exporters call resourceScopes: it is read where that is absent.
	resourceOldScopes = 1000
	scopeRecords      = 2 // ScopeLogs.log_records

	recordTime         = 1
	recordSeverity     = 2
	recordSeverityText = 3
	recordBody         = 5
	recordAttribute    = 6
	recordDropped      = 7
	recordFlags        = 8
	recordTraceID      = 9
	recordSpanID       = 10
	recordObserved     = 11
	recordEvent        = 12

	attributeKey   = 1
	attributeValue = 2

	valueText   = 1
	valueBool   = 2
	valueInt    = 3
	valueDouble = 4
	valueList   = 5
	valueMap    = 6
	valueBytes  = 7
)

// record is a log record, as far as it is read. It is used for one after the other.
type record struct {
	time, observed uint64 // unix ns; 0: none
	severity       int32
	severityText   string
	event          string
	body           anyValue
	attrs          []attribute
	over           bool // it has more than maxAttributes: the others were passed over
	dropped, flags uint32
	badID          error // why its trace or span id is none
	traceID        pcommon.TraceID
	spanID         pcommon.SpanID
}

type attribute struct {
	key   string
	value anyValue
}

// anyValue is a text, a number or a truth value; any other one is OpenTelemetry's own.
type anyValue struct {
	kind  pcommon.ValueType
	text  string
	num   uint64 // an integer, the bits of a float64, or 1 for true
	other pcommon.Value
}

// read reads the fields of a log record. Those it does not know are passed over.
func (r *record) read(w wire) error {
	*r = record{attrs: r.attrs[:0]}
	for w.more() {
		number, kind, err := w.tag()
		if err != nil {
			return err
		}
		switch number {
		case recordTime:
			r.time, err = w.fixed64(kind)
		case recordObserved:
			r.observed, err = w.fixed64(kind)
		case recordSeverity:
			var n uint64
			n, err = w.varint(kind)
			r.severity = int32(n) // an enum is cut like that
		case recordSeverityText:
			r.severityText, err = w.text(kind)
		case recordEvent:
			r.event, err = w.text(kind)
		case recordBody:
			err = readMessage(&w, kind, r.body.read)
		case recordAttribute:
			if r.over = r.over || len(r.attrs) == maxAttributes; r.over {
				err = w.pass(number, kind)
				break
			}
			r.attrs = append(r.attrs, attribute{})
			err = readMessage(&w, kind, r.attrs[len(r.attrs)-1].read)
		case recordDropped:
			var n uint64
			n, err = w.varint(kind)
			r.dropped = uint32(n)
		case recordFlags:
			r.flags, err = w.fixed32(kind)
		case recordTraceID:
			r.badID, err = w.id(kind, r.traceID[:], r.badID)
		case recordSpanID:
			r.badID, err = w.id(kind, r.spanID[:], r.badID)
		default:
			err = w.pass(number, kind)
		}
		if err != nil {
			return fmt.Errorf("field %d of a log record: %w", number, err)
		}
	}
	return nil
}

func (a *attribute) read(w wire) error {
	for w.more() {
		number, kind, err := w.tag()
		if err != nil {
			return err
		}
		switch number {
		case attributeKey:
			a.key, err = w.text(kind)
		case attributeValue:
			err = readMessage(&w, kind, a.value.read)
		default:
			err = w.pass(number, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads a value. What has parts, and bytes, OpenTelemetry's decoder reads.
func (v *anyValue) read(w wire) error {
	whole := w.left()
	for w.more() {
		number, kind, err := w.tag()
		if err != nil {
			return err
		}
		switch number {
		case valueText:
			v.kind = pcommon.ValueTypeStr
			v.text, err = w.text(kind)
		case valueBool:
			v.kind = pcommon.ValueTypeBool
			v.num, err = w.varint(kind)
			v.num = min(v.num, 1)
		case valueInt:
			v.kind = pcommon.ValueTypeInt
			v.num, err = w.varint(kind)
		case valueDouble:
			v.kind = pcommon.ValueTypeDouble
			v.num, err = w.fixed64(kind)
		case valueList, valueMap, valueBytes:
			scope, err := decodeScope(tagged(scopeRecords, tagged(recordBody, whole)))
			if err != nil {
				return err
			}
			v.fromPdata(scope.LogRecords().At(0).Body())
			return nil
		default:
			err = w.pass(number, kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fromPdata makes it what OpenTelemetry's decoder read.
func (v *anyValue) fromPdata(other pcommon.Value) {
	*v = anyValue{kind: other.Type(), other: other}
	switch v.kind { // a scalar may come after a list: the last one counts
	case pcommon.ValueTypeStr:
		v.text = other.Str()
	case pcommon.ValueTypeInt:
		v.num = uint64(other.Int())
	case pcommon.ValueTypeDouble:
		v.num = math.Float64bits(other.Double())
	case pcommon.ValueTypeBool:
		if other.Bool() {
			v.num = 1
		}
	}
}

// toPdata is the value as OpenTelemetry's.
func (v *anyValue) toPdata() pcommon.Value {
	switch v.kind {
	case pcommon.ValueTypeEmpty:
		return pcommon.NewValueEmpty()
	case pcommon.ValueTypeStr:
		return pcommon.NewValueStr(v.text)
	case pcommon.ValueTypeInt:
		return pcommon.NewValueInt(int64(v.num))
	case pcommon.ValueTypeDouble:
		return pcommon.NewValueDouble(math.Float64frombits(v.num))
	case pcommon.ValueTypeBool:
		return pcommon.NewValueBool(v.num != 0)
	}
	return v.other
}

// asText is the value as a text.
func (v *anyValue) asText() string {
	if v.kind == pcommon.ValueTypeStr {
		return v.text
	}
	return textOf(v.toPdata())
}

// decodeScope has OpenTelemetry's decoder read the content of a ScopeLogs.
func decodeScope(content []byte) (plog.ScopeLogs, error) {
	rl, err := decodeResource(tagged(resourceScopes, content))
	if err != nil {
		return plog.ScopeLogs{}, err
	}
	return rl.ScopeLogs().At(0), nil
}

// decodeResource has OpenTelemetry's decoder read the content of a ResourceLogs.
func decodeResource(content []byte) (plog.ResourceLogs, error) {
	body := tagged(requestResources, content)
	if err := checkProto(body, exportRequest); err != nil {
		return plog.ResourceLogs{}, err
	}
	req := plogotlp.NewExportRequest()
	if err := req.UnmarshalProto(body); err != nil {
		return plog.ResourceLogs{}, err
	}
	return req.Logs().ResourceLogs().At(0), nil
}

// tagged is content as a field of a message.
func tagged(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}
