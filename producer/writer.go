package producer

import (
	"bytes"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// Writer takes log lines. Give it to anything that writes a line with each Write,
// such as log.New. Programs that log by zerolog use package zerologger.
type Writer struct{ p *Producer }

// Writer returns an io.Writer for log lines; see LineEvent.
func (p *Producer) Writer() *Writer { return &Writer{p: p} }

// Write implements io.Writer. It never fails: what the producer cannot take is
// counted as Log counts it.
func (w *Writer) Write(line []byte) (int, error) {
	w.p.Log(w.p.LineEvent(line))
	return len(line), nil
}

// LineEvent reads a log line for the producer's topic. A line that is a JSON object
// becomes an event as rawjson.Parse reads it: time, level, message, type, service,
// user_id, trace_id and span_id fill the fields, every other key becomes an attribute. Any other
// line becomes the message.
func (p *Producer) LineEvent(line []byte) Event {
	line = bytes.TrimRight(line, "\r\n")
	ev, err := rawjson.Keys{Topic: &p.topic}.Parse(line)
	switch {
	case err == nil:
		return ev
	case len(p.topic.PII) > 0 && bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")):
		// It should have been JSON: it is unknown which of its fields have rules.
		return Event{Message: schemas.Withheld(len(line))}
	}
	return Event{Message: string(line)}
}
