package repair

import (
	"slices"
	"testing"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/schemas"
)

// Dispatchers wait as long as TIMERS ends below what was routed. What ended is taken out before it goes on.
func TestPlanDropsEndedFirst(t *testing.T) {
	t.Parallel()
	some := []records.Lost{{Row: records.Row{Subject: schemas.TimerSubject(schemas.DefaultTimerTopic, 0, "g", 0, "t")}}}
	for _, c := range []struct {
		name string
		plan frontPlan
		want []Do
	}{
		{"an older copy", frontPlan{advance: &Action{Do: AdvanceFront}, again: &Action{Do: PutAgain}, lost: some, ended: some, gone: some}, []Do{DropEnded, AdvanceFront, PutAgain, RestoreTimers, Lost}},
		{"it went on", frontPlan{again: &Action{Do: PutAgain}, ended: some}, []Do{DropEnded, PutAgain}},
		{"whole", frontPlan{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &Plan{}
			c.plan.kind, c.plan.topic = records.Timers, &schemas.Topic{Name: schemas.DefaultTimerTopic}
			c.plan.addTo(p)
			var got []Do
			for _, a := range p.Actions {
				got = append(got, a.Do)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		})
	}
}
