package embedded

import (
	"fmt"
	"sync/atomic"
)

// natsLog hands the server's messages on and keeps the fatal one. The server expects Fatalf to end the process and
// otherwise just returns from Start, so that this text is the only trace of why it did not come up.
type natsLog struct {
	log   LogFunc
	fatal atomic.Pointer[string]
}

func (l *natsLog) Noticef(format string, v ...any) { l.say(LevelInfo, format, v) }
func (l *natsLog) Errorf(format string, v ...any)  { l.say(LevelError, format, v) }
func (l *natsLog) Debugf(format string, v ...any)  { l.say(LevelDebug, format, v) }
func (l *natsLog) Tracef(format string, v ...any)  { l.say(LevelDebug, format, v) }

func (l *natsLog) Warnf(format string, v ...any) {
	if format != unhashedWarning {
		l.say(LevelWarn, format, v)
	}
}

// unhashedWarning is what the server says of passwords that are not hashed. Those here are long and random, and in files that
// their owner alone may read: hashing guards guessable ones. Who starts an Almanac can do nothing about it.
const unhashedWarning = "Plaintext passwords detected, use nkeys or bcrypt"

func (l *natsLog) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.fatal.CompareAndSwap(nil, &text) // the first is the cause, later ones follow from it
	l.log.say(LevelError, "nats", text)
}

func (l *natsLog) say(level Level, format string, v []any) {
	if l.log != nil {
		l.log(level, "nats", fmt.Sprintf(format, v...))
	}
}

// lastWords is the fatal message, or "".
func (l *natsLog) lastWords() string {
	if p := l.fatal.Load(); p != nil {
		return *p
	}
	return ""
}
