package producer

import (
	"bytes"
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/schemas"
)

// Writer takes log lines. Give it to zerolog.New, or to anything that writes a
// line with each Write:
//
//	log := zerolog.New(p.Writer()).With().Timestamp().Logger()
type Writer struct{ p *Producer }

var _ zerolog.LevelWriter = (*Writer)(nil)

// Writer is an io.Writer for the lines of zerolog and others. A line that is a
// JSON object becomes an event as schemas.ParseJSONEvent reads it: time, level,
// message, type, service, user_id, trace_id and span_id fill the fields, every
// other key becomes an attribute. Any other line becomes the message.
func (p *Producer) Writer() *Writer { return &Writer{p: p} }

// fatalWait bounds how long a fatal line may hold up the end of the process.
const fatalWait = 5 * time.Second

// Write implements io.Writer. It never fails: what the producer cannot take is
// counted as Log counts it.
func (w *Writer) Write(line []byte) (int, error) {
	w.p.Log(lineEvent(&w.p.topic, line, zerolog.NoLevel))
	return len(line), nil
}

// WriteLevel implements zerolog.LevelWriter. After a line of FatalLevel or
// PanicLevel the process usually ends, so it returns when that line, and all
// before it, are stored, or after five seconds.
func (w *Writer) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	ev := lineEvent(&w.p.topic, line, level)
	if level != zerolog.FatalLevel && level != zerolog.PanicLevel {
		w.p.Log(ev)
		return len(line), nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), fatalWait)
	defer cancel()
	if err := w.p.Publish(ctx, ev); err != nil {
		return 0, err
	}
	if err := w.p.Flush(ctx); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Close flushes for up to five seconds; zerolog calls it before a fatal exit.
// The producer stays open.
func (w *Writer) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), fatalWait)
	defer cancel()
	return w.p.Flush(ctx)
}

// lineEvent reads a log line for a topic; level is for lines that do not
// have one themselves.
func lineEvent(t *schemas.Topic, line []byte, level zerolog.Level) Event {
	line = bytes.TrimRight(line, "\r\n")
	ev, err := schemas.EventKeys{Topic: t}.ParseJSON(line)
	switch {
	case err == nil:
	case len(t.PII) > 0 && bytes.HasPrefix(bytes.TrimSpace(line), []byte("{")):
		// It should have been JSON: it is unknown which of its fields have rules.
		ev = Event{Message: schemas.Withheld(len(line))}
	default:
		ev = Event{Message: string(line)}
	}
	if ev.Level == "" && level != zerolog.NoLevel {
		ev.Level = level.String()
	}
	return ev
}
