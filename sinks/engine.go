package sinks

import "time"

// engine is a ClickHouse as it was last seen running.
type engine struct {
	up time.Duration
	at time.Time // on this process's clock; zero: never
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
