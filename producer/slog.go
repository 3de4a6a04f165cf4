package producer

import (
	"context"
	"encoding"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/almanac-events/almanac/schemas"
)

// SlogOptions are the standard library's handler options and one more. Level
// nil means slog.LevelInfo. ReplaceAttr is called with the names of the open
// groups, for attributes and for the built-in source, not for time, level and
// message, which are fields of the event.
type SlogOptions struct {
	slog.HandlerOptions
	// TraceIDs takes the ids of the active span from a record's context, in
	// hex, or two empty strings. With OpenTelemetry:
	//
	//	sc := trace.SpanContextFromContext(ctx)
	//	if !sc.IsValid() { return "", "" }
	//	return sc.TraceID().String(), sc.SpanID().String()
	TraceIDs func(context.Context) (traceID, spanID string)
}

// SlogHandler logs the records of a slog.Logger as events: message, time and
// level (in lower case: info, warn+2) become the event's fields; the attributes
// type, service, user_id, trace_id and span_id do, when they are in no group;
// all others become attributes, groups joined with dots (request.method).
// Numbers and times keep their type, durations are nanoseconds, errors and
// Stringers their text, anything else JSON. AddSource adds source.function,
// source.file and source.line. At most one SlogOptions may be given.
func (p *Producer) SlogHandler(opts ...SlogOptions) slog.Handler {
	h := &slogHandler{p: p}
	if len(opts) > 0 {
		h.opts = opts[0]
	}
	return h
}

// CheckLines refuses the lines of a logger, ErrWrongKind, when the producer's topic is of
// another kind than log. A refused line is counted as a drop of cause wrong-kind.
func (p *Producer) CheckLines() error {
	if kind := p.topic.Spec().Kind; kind != schemas.KindLog {
		err := fmt.Errorf("%w: topic %q is of kind %s, and the lines of a logger go to a topic of kind %s", schemas.ErrWrongKind, p.topic.Name, kind, schemas.KindLog)
		p.dropNew(schemas.Reason(err))
		return err
	}
	return nil
}

// slogHandler is immutable; WithAttrs and WithGroup make new ones.
type slogHandler struct {
	p      *Producer
	opts   SlogOptions
	preset record   // the attributes of WithAttrs, ready to log
	groups []string // open groups, for ReplaceAttr
	prefix string   // the same, joined, with a dot at the end
}

// Enabled implements slog.Handler.
func (h *slogHandler) Enabled(_ context.Context, level slog.Level) bool {
	if h.opts.Level == nil {
		return level >= slog.LevelInfo
	}
	return level >= h.opts.Level.Level()
}

// Handle implements slog.Handler. It never fails.
func (h *slogHandler) Handle(ctx context.Context, r slog.Record) error {
	if err := h.p.CheckLines(); err != nil {
		return err
	}
	rec := records.Get().(*record)
	defer rec.free()
	rec.ev = h.preset.ev
	rec.attrs = append(rec.attrs[:0], h.preset.attrs...)
	rec.ev.Time, rec.ev.Level, rec.ev.Message = r.Time, levelName(r.Level), r.Message
	if h.opts.TraceIDs != nil {
		if trace, span := h.opts.TraceIDs(ctx); trace != "" {
			rec.ev.TraceID, rec.ev.SpanID = trace, span
		}
	}
	r.Attrs(func(a slog.Attr) bool {
		h.add(rec, h.prefix, h.groups, a)
		return true
	})
	if h.opts.AddSource && r.PC != 0 {
		f, _ := runtime.CallersFrames([]uintptr{r.PC}).Next()
		h.add(rec, "", nil, slog.Any(slog.SourceKey, slog.GroupValue(
			slog.String("function", f.Function), slog.String("file", f.File), slog.Int("line", f.Line))))
	}
	rec.ev.Attrs = rec.attrs
	h.p.Log(rec.ev)
	return nil
}

// WithAttrs implements slog.Handler. The attributes are resolved here, once.
func (h *slogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	n := *h
	// Cut to its length, so that handlers made from this one do not share what
	// they append.
	n.preset.attrs = h.preset.attrs[:len(h.preset.attrs):len(h.preset.attrs)]
	for _, a := range attrs {
		n.add(&n.preset, h.prefix, h.groups, a)
	}
	return &n
}

// WithGroup implements slog.Handler.
func (h *slogHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	n := *h
	n.groups = append(h.groups[:len(h.groups):len(h.groups)], name)
	n.prefix = h.prefix + name + "."
	return &n
}

// record is an event being put together from a slog record.
type record struct {
	ev    Event
	attrs []Attr
}

var records = sync.Pool{New: func() any { return new(record) }}

func (r *record) free() {
	clear(r.attrs) // the pool must not hold the caller's strings
	*r = record{attrs: r.attrs[:0]}
	records.Put(r)
}

func (h *slogHandler) add(rec *record, prefix string, groups []string, a slog.Attr) {
	v := resolve(a.Value)
	if h.opts.ReplaceAttr != nil && v.Kind() != slog.KindGroup {
		a = h.opts.ReplaceAttr(groups, slog.Attr{Key: a.Key, Value: v})
		v = resolve(a.Value)
	}
	if v.Kind() == slog.KindGroup {
		if a.Key != "" {
			prefix += a.Key + "."
			groups = append(groups[:len(groups):len(groups)], a.Key)
		}
		for _, m := range v.Group() {
			h.add(rec, prefix, groups, m)
		}
		return
	}
	if a.Equal(slog.Attr{}) {
		return
	}
	if prefix == "" {
		if field := field(&rec.ev, a.Key); field != nil {
			*field = text(v)
			return
		}
	}
	key := prefix + a.Key
	if key == "" {
		key = "!BADKEY" // as slog names a value without a key
	}
	rec.attrs = append(rec.attrs, attr(key, v))
}

// field is the field of ev that an attribute of that name fills, or nil.
func field(ev *Event, key string) *string {
	switch key {
	case schemas.ColType:
		return &ev.Type
	case schemas.ColService:
		return &ev.Service
	case schemas.ColUserID:
		return &ev.UserID
	case schemas.ColTraceID:
		return &ev.TraceID
	case schemas.ColSpanID:
		return &ev.SpanID
	}
	return nil
}

// levelName is debug, info, warn, error, or the next lower one with the distance.
func levelName(l slog.Level) string {
	switch l {
	case slog.LevelDebug:
		return "debug"
	case slog.LevelInfo:
		return "info"
	case slog.LevelWarn:
		return "warn"
	case slog.LevelError:
		return "error"
	}
	return strings.ToLower(l.String())
}

// resolve is the value behind LogValuers, or what their panic said.
func resolve(v slog.Value) slog.Value {
	if v.Kind() != slog.KindLogValuer {
		return v
	}
	return v.Resolve()
}

// attr is a resolved value as an attribute.
func attr(key string, v slog.Value) Attr {
	switch v.Kind() {
	case slog.KindInt64:
		return schemas.Int64(key, v.Int64())
	case slog.KindUint64:
		if n := v.Uint64(); n <= math.MaxInt64 {
			return schemas.Int64(key, int64(n))
		}
		return schemas.String(key, strconv.FormatUint(v.Uint64(), 10))
	case slog.KindFloat64:
		return schemas.Float64(key, v.Float64())
	case slog.KindBool:
		return schemas.Bool(key, v.Bool())
	case slog.KindDuration:
		return schemas.Int64(key, int64(v.Duration()))
	case slog.KindTime:
		if t := v.Time(); t.Year() >= 1900 && t.Year() <= 2261 {
			return schemas.Time(key, t)
		}
	}
	return schemas.String(key, text(v))
}

// text is a resolved value as text.
func text(v slog.Value) string {
	if v.Kind() != slog.KindAny {
		return v.String()
	}
	return anyText(v.Any())
}

// anyText is any value as text. A method of the value that panics, as those of
// nil pointers do, must not take the application down.
func anyText(v any) (s string) {
	defer func() {
		if r := recover(); r != nil {
			s = fmt.Sprintf("!PANIC: %v", r)
		}
	}()
	switch v := v.(type) {
	case error:
		return v.Error()
	case fmt.Stringer:
		return v.String()
	case encoding.TextMarshaler:
		if b, err := v.MarshalText(); err == nil {
			return string(b)
		}
	case []byte:
		return string(v)
	}
	if b, err := json.Marshal(v); err == nil {
		return string(b)
	}
	return fmt.Sprintf("%+v", v)
}
