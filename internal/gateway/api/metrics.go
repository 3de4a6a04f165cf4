package api

import (
	"context"
	"net/http"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/internal/operations"
	"github.com/almanac-events/almanac/internal/timers/exposition"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// frontApart is how far apart the reads of the front for metrics begin at least.
const frontApart = 10 * time.Second

// addMetrics adds what Prometheus scrapes: the numbers of timers.
func (a *API) addMetrics(on routes) {
	if a.cfg.Timers == nil {
		return
	}
	sources := append([]exposition.Source{exposition.Paced("front", a.frontMetrics, frontApart)}, a.cfg.Metrics...)
	on.serve(&operations.Metrics, exposition.Handler(func(w http.ResponseWriter, r *http.Request, err error) {
		request.Fail(w, r, refusal(err))
	}, sources...).ServeHTTP)
}

// frontMetrics reads how the timers of every topic are.
func (a *API) frontMetrics(ctx context.Context) (exposition.Group, error) {
	topics, err := a.cfg.Registry.Topics(ctx)
	if err != nil {
		return nil, err
	}
	var all []exposition.Topic
	for i := range topics {
		if topics[i].Kind != kinds.Timer {
			continue
		}
		t, err := a.timers.open(ctx, a.cfg.Timers, topics[i].Name)
		if err != nil {
			return nil, err
		}
		groups, err := t.Status(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, exposition.Topic{Name: topics[i].Name, Groups: groups})
	}
	return exposition.Front(all), nil
}
