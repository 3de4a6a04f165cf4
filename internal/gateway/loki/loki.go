package loki

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// AttrLabels keeps the labels of a stream as one text where they do not parse.
const AttrLabels = "loki.labels"

// Push is what one request holds.
type Push struct {
	Events  []schemas.Event
	Entries int // how many the request has: events and refused
	Refused []Refusal

	space int // bytes that further events may have
}

// Refusal says why an entry did not become an event.
type Refusal struct {
	Entry int // from 0, over all streams
	Err   error
}

// Options say how to read a push.
type Options struct {
	// Topic, when not nil, is where the events go; see rawjson.Keys.
	Topic *schemas.Topic
	// MaxBytes bounds a snappy block once decompressed, and what the events of one
	// push have together: each entry repeats the labels of its stream.
	MaxBytes int
	// MaxEvents bounds the entries of a push.
	MaxEvents int
}

// paths are the names that fill a column, the best first: those of Loki's own clients, of OpenTelemetry, and the
// spellings of a trace's ids that loggers use.
var paths = rawjson.NewPaths(map[string][]string{
	schemas.ColLevel:   {"level", "detected_level"},
	schemas.ColService: {"service_name", "service", "app", "job"},
	schemas.ColUserID:  {"user_id"},
	schemas.ColTraceID: {"trace_id", "traceId", "traceID"},
	schemas.ColSpanID:  {"span_id", "spanId", "spanID"},
	schemas.ColMessage: {"message", "msg"},
})

// textPaths are for lines that are the message themselves: a label called message
// is then a label like others.
var textPaths = paths.Without(schemas.ColMessage)

// record is one entry as both encodings have it. labels and metadata are JSON objects, or
// empty; all entries of a stream share one text of its labels.
type record struct {
	at       time.Time
	line     string
	labels   string
	metadata string
	pairs    []rawjson.Pair // what protobuf has in place of both
}

// add makes an event of an entry, or a refusal. The error is ErrTooLarge.
func (p *Push) add(o *Options, r *record) error {
	if p.Entries == o.MaxEvents {
		return fmt.Errorf("%w: more than %d entries; send fewer at once", ErrTooLarge, o.MaxEvents)
	}
	ev, err := event(o, r)
	if err != nil {
		p.refuse(err)
		return nil
	}
	if p.space -= ev.Bytes(); p.space < 0 {
		return fmt.Errorf("%w: its events have more than %d bytes; send fewer entries or labels at once", ErrTooLarge, o.MaxBytes)
	}
	p.Entries++
	p.Events = append(p.Events, ev)
	return nil
}

func (p *Push) refuse(err error) {
	p.Refused = append(p.Refused, Refusal{p.Entries, err})
	p.Entries++
}

func event(o *Options, r *record) (schemas.Event, error) {
	var objects []string
	for _, object := range []string{r.metadata, r.labels} {
		if object != "" {
			objects = append(objects, object)
		}
	}
	if strings.HasPrefix(strings.TrimLeft(r.line, " \t\r\n"), "{") {
		ev, err := rawjson.Keys{Paths: paths, Topic: o.Topic}.FromRecord(r.pairs, append(objects, r.line)...)
		if err == nil {
			ev.Time = r.at
			return ev, nil
		}
		if !errors.Is(err, schemas.ErrNotJSON) {
			return ev, fmt.Errorf("%w: %w", ErrEntry, err)
		}
	}
	ev, err := rawjson.Keys{Paths: textPaths, Topic: o.Topic}.FromRecord(r.pairs, objects...)
	if err != nil {
		return ev, fmt.Errorf("%w: labels or metadata: %w", ErrEntry, err)
	}
	ev.Time, ev.Message = r.at, r.line
	return ev, nil
}

// nanoseconds reads an entry's time, a decimal count of nanoseconds since the epoch.
func nanoseconds(text string) (time.Time, error) {
	ns, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: time %.64q: expected nanoseconds since 1970 as decimal digits", ErrEntry, text)
	}
	return time.Unix(0, ns).UTC(), nil
}
