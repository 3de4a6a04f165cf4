package sinks

import "time"

// engine is a ClickHouse as it was last seen running.
type engine struct {
	up time.Duration
	at time.Time // on this process's clock; zero: never
}

// sizes are the rows of topics' tables when they were last looked at.
type sizes map[string]uint64

// shrank reports whether a table has fewer rows than it had, or is gone: rows that retention or an
// erasure took, or rows that were truncated, dropped or deleted by hand and belong there.
func (s sizes) shrank(now sizes) bool {
	for name, rows := range s {
		if now[name] < rows {
			return true
		}
	}
	return false
}

// lookEvery is how often ClickHouse is asked at most whether it restarted.
const lookEvery = time.Second

// restarted reports whether the engine runs for less long than it must since it was
// last asked. Uptimes are whole seconds.
func (e *engine) restarted(up time.Duration, now time.Time) bool {
	restarted := !e.at.IsZero() && up+2*time.Second < e.up+now.Sub(e.at)
	e.up, e.at = up, now
	return restarted
}
