package router

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

func TestRunningStops(t *testing.T) {
	t.Parallel()
	app, again := schemas.NewTopic("app"), schemas.NewTopic("app")
	changed := schemas.NewTopic("app")
	changed.Version = 2
	for name, c := range map[string]struct {
		wanted           *schemas.Topic
		retired, started bool
		want             bool
	}{
		"goes on":                         {wanted: &again, started: true},
		"another's now":                   {started: true, want: true},
		"its topic changed":               {wanted: &changed, want: true},
		"a retired shard":                 {wanted: &again, retired: true, started: true, want: true},
		"a retired shard, still starting": {wanted: &again, retired: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &running{topic: &app}
			l.started.Store(c.started)
			if got := l.stops(c.wanted, c.retired); got != c.want {
				t.Errorf("stops: %v, want %v", got, c.want)
			}
		})
	}
}
