package families

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/ops/metrics"
)

// TestOfRules holds that the rules of topics beyond the bound of labels are added up, with the lag of the one that is
// furthest behind, and that an instant ahead of the clock is a lag of zero.
func TestOfRules(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	all := []alerts.TopicStatus{{Topic: "ahead", Rules: 1, UpTo: now.Add(time.Second)}}
	for i := range metrics.MaxNames {
		all = append(all, alerts.TopicStatus{Topic: fmt.Sprintf("t%02d", i), Rules: 2, Wrong: 1, Pending: 3, Firing: 4, UpTo: now.Add(-time.Duration(i) * time.Second)})
	}
	all = append(all, alerts.TopicStatus{Topic: "z", Rules: 5, UpTo: now.Add(-time.Minute)})
	var names metrics.Names
	got := map[string]float64{}
	for _, s := range ofRules(&names, all, now) {
		got[s.Of.Name+" "+s.Labels[0]] = s.Value
	}
	last := metrics.MaxNames - 1 // the first name that found no room
	for name, want := range map[string]float64{
		"almanac_alerts_evaluation_lag_seconds ahead": 0, "almanac_alerts_rules t00": 2, "almanac_alerts_evaluation_lag_seconds t05": 5, "almanac_alerts_firing t00": 4,
		"almanac_alerts_rules _other": 7, "almanac_alerts_wrong_rules _other": 1, "almanac_alerts_pending _other": 3,
		"almanac_alerts_evaluation_lag_seconds _other": float64(max(last, 60)),
	} {
		if v, there := got[name]; !there || v != want {
			t.Errorf("%s is %v, %v, want %v", name, v, there, want)
		}
	}
}

// TestRecorded holds what is counted of rules that record, from 0 on, and that a rule which wrote something and failed counts in both.
func TestRecorded(t *testing.T) {
	t.Parallel()
	e := NewEvaluator(metrics.New(metrics.Config{Version: "v"}))
	is := func(v *prometheus.CounterVec) float64 {
		var m dto.Metric
		if err := v.WithLabelValues("metrics").Write(&m); err != nil {
			t.Fatal(err)
		}
		return m.GetCounter().GetValue()
	}
	for _, c := range []struct {
		samples              int
		err                  error
		recorded, unrecorded float64
	}{{0, nil, 0, 0}, {3, nil, 3, 0}, {0, errors.New("the stream is full"), 3, 1}, {2, errors.New("an erasure was entered"), 5, 2}} {
		e.Recorded("metrics", c.samples, c.err)
		if got, not := is(e.recorded), is(e.unrecorded); got != c.recorded || not != c.unrecorded {
			t.Errorf("after %d samples, %v: %v and %v, want %v and %v", c.samples, c.err, got, not, c.recorded, c.unrecorded)
		}
	}
}
