package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// progressEvery is how often a progress line is drawn.
const progressEvery = 200 * time.Millisecond

// progress draws one line over and over. A nil one draws nothing.
type progress struct {
	w     io.Writer
	name  string
	total int64 // bytes of the input; 0: unknown
	stats *stats
	began time.Time
}

func newProgress(w io.Writer, name string, total int64, t *stats) *progress {
	return &progress{w: w, name: name, total: total, stats: t, began: time.Now()}
}

func (p *progress) draw(now time.Time) {
	if p == nil {
		return
	}
	s, bytes := p.stats.summary(), p.stats.bytes.Load()
	took := max(now.Sub(p.began), time.Millisecond)
	line := fmt.Sprintf("%s  %d read  %d accepted  %d refused  %.0f/s", p.name, s.Read, s.Accepted, s.Refused, float64(s.Accepted)/took.Seconds())
	if p.total > 0 {
		part := min(float64(bytes)/float64(p.total), 1)
		line = bar(part) + "  " + line
		if part > 0.01 && part < 1 {
			line += "  " + time.Duration(float64(took)*(1-part)/part).Round(time.Second).String() + " to go"
		}
	} else {
		line += "  " + schemas.FormatBytes(float64(bytes))
	}
	if p.stats.idle(now) > 2*time.Second {
		line += "  waiting for NATS"
	}
	_, _ = fmt.Fprint(p.w, clearLine+line) // back to the beginning of the line, and clear it
}

// end leaves the line, so that what follows begins on one of its own.
func (p *progress) end() {
	if p != nil {
		_, _ = fmt.Fprintln(p.w)
	}
}

const barWidth = 20

func bar(part float64) string {
	full := int(part * barWidth)
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "]" + fmt.Sprintf(" %3.0f%%", part*100)
}
