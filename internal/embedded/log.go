package embedded

// Level is the weight of a message, as the servers give it.
type Level int8

// The levels, in rising weight.
const (
	LevelDebug Level = iota
	LevelInfo
	LevelWarn
	LevelError
)

func (l Level) String() string {
	switch l {
	case LevelDebug:
		return "debug"
	case LevelInfo:
		return "info"
	case LevelWarn:
		return "warn"
	case LevelError:
		return "error"
	}
	return "unknown"
}

// LogFunc hears what the servers have to say. part is "nats" or "clickhouse". It is called from many goroutines and
// must not block. Nil is silence.
type LogFunc func(level Level, part, text string)

func (f LogFunc) say(level Level, part, text string) {
	if f != nil {
		f(level, part, text)
	}
}
