package main

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/almanac-events/almanac/internal/embedded"
)

const (
	logAuto = "auto"
	logText = "text"
	logJSON = "json"
)

// textLogs says whether logs are for people.
func (s *settings) textLogs(w io.Writer) bool {
	return s.LogFormat == logText || s.LogFormat == logAuto && terminal(w)
}

// logger writes to w: text on a terminal, JSON otherwise, unless told which.
func (s *settings) logger(w io.Writer) zerolog.Logger {
	zerolog.TimeFieldFormat = time.RFC3339Nano
	if s.textLogs(w) {
		w = zerolog.ConsoleWriter{Out: unfiltered(w), NoColor: !colours(w), TimeFormat: time.TimeOnly, FormatPrepare: printableMessage}
	}
	s.level = &logLevel{}
	s.level.set(s.LogLevel)
	return zerolog.New(zerolog.SyncWriter(w)).Sample(s.level).With().Timestamp().Logger()
}

// logLevel is that of a logger and of those made from it; it may change.
type logLevel struct{ now atomic.Int32 }

func (l *logLevel) set(text string) {
	level, err := zerolog.ParseLevel(text)
	if err != nil {
		level = zerolog.InfoLevel // load has checked it
	}
	l.now.Store(int32(level))
}

// Sample implements zerolog.Sampler: it is asked before a line is made.
func (l *logLevel) Sample(level zerolog.Level) bool { return int32(level) >= l.now.Load() }

// printableMessage takes out of a line's message what would garble a terminal: it may be a server's,
// with a client's words in it. Fields with such characters are quoted.
func printableMessage(line map[string]any) error {
	if text, ok := line[zerolog.MessageFieldName].(string); ok {
		line[zerolog.MessageFieldName] = printable(text)
	}
	return nil
}

// serverLog passes on what the embedded servers say. NATS greets with a page of
// notices at each start: they are details here.
func serverLog(log zerolog.Logger) embedded.LogFunc {
	return func(level embedded.Level, part, text string) {
		switch {
		case level == embedded.LevelError:
			log.Error().Str("part", part).Msg(text)
		case level == embedded.LevelWarn:
			log.Warn().Str("part", part).Msg(text)
		case level == embedded.LevelInfo && part != "nats":
			log.Info().Str("part", part).Msg(text)
		default:
			log.Debug().Str("part", part).Msg(text)
		}
	}
}
