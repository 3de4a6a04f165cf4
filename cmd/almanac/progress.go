package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/send"
	"github.com/almanac-events/almanac/schemas"
)

// progressEvery is how often a progress line is drawn.
const progressEvery = 200 * time.Millisecond

// progress draws one line over and over.
type progress struct {
	w     io.Writer
	name  string
	total int64 // bytes of the input; 0: unknown
	stats *send.Stats
	began time.Time
}

// sendProgress is what draws how far a send is; nil where it goes to no terminal.
func (a *app) sendProgress(quiet bool, topic string, total int64, t *send.Stats) send.Progress {
	if quiet || !terminal(a.stderr) {
		return nil
	}
	return &progress{w: a.stderr, name: topic, total: total, stats: t, began: time.Now()}
}

// Draw draws the line again.
func (p *progress) Draw(now time.Time) {
	s, bytes := p.stats.Summary(), p.stats.Bytes()
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
	if p.stats.Idle(now) > 2*time.Second {
		line += "  waiting for NATS"
	}
	_, _ = fmt.Fprint(p.w, clearLine+line) // back to the beginning of the line, and clear it
}

// End leaves the line, so that what follows begins on one of its own.
func (p *progress) End() { _, _ = fmt.Fprintln(p.w) }

// barWidth is a sign for each twentieth.
const barWidth = 20

func bar(part float64) string {
	full := int(part * barWidth)
	return "[" + strings.Repeat("=", full) + strings.Repeat(" ", barWidth-full) + "]" + fmt.Sprintf(" %3.0f%%", part*100)
}
