package zerologger

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/producer"
)

// Writer takes the lines of a zerolog.Logger.
type Writer struct{ p *producer.Producer }

var _ zerolog.LevelWriter = (*Writer)(nil)

// New returns a writer of events to p, which stays the caller's to close.
func New(p *producer.Producer) *Writer { return &Writer{p: p} }

// fatalWait bounds how long a fatal line may hold up the end of the process.
const fatalWait = 5 * time.Second

// Write implements io.Writer. It fails for a topic of another kind than log; what the
// producer cannot take is counted as Log counts it.
func (w *Writer) Write(line []byte) (int, error) { return w.WriteLevel(zerolog.NoLevel, line) }

// WriteLevel implements zerolog.LevelWriter. After a line of FatalLevel or
// PanicLevel the process usually ends, so it returns when that line, and all
// before it, are stored, or after five seconds.
func (w *Writer) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	if err := w.p.CheckLines(); err != nil {
		return 0, err
	}
	ev := w.p.LineEvent(line)
	if ev.Level == "" && level != zerolog.NoLevel {
		ev.Level = level.String()
	}
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
