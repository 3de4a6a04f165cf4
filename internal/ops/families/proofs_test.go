package families

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/ops/metrics"
)

// TestProofsHaveTheTimeOfAnAnswer: taking the runs over proves nothing, so that AlmanacVerifyOld is not put off by sinks that end again and again.
func TestProofsHaveTheTimeOfAnAnswer(t *testing.T) {
	t.Parallel()
	p := NewProofs(metrics.New(metrics.Config{}))
	says := func(m *metrics.Metric) bool {
		return slices.ContainsFunc(p.samples(), func(s metrics.Sample) bool { return s.Of == m })
	}
	for _, c := range []struct {
		name        string
		do          func()
		every, time bool
	}{
		{"before", func() {}, false, false},
		{"taken over", func() { p.Began(time.Hour) }, true, false},
		{"no answer", func() { p.Ended(nil, time.Second, errors.New("away")) }, true, false},
		{"an answer", func() { p.Ended(&verify.Report{}, time.Second, nil) }, true, true},
		{"given away", p.Left, false, false},
		{"taken over again", func() { p.Began(time.Hour) }, true, true},
	} {
		c.do()
		if every, at := says(metrics.VerifyEvery), says(metrics.VerifyTime); every != c.every || at != c.time {
			t.Errorf("%s: every %v, time %v", c.name, every, at)
		}
	}
}
