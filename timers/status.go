package timers

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/timer"
)

// Status is how a group's timers are.
type Status struct {
	Group  string `json:"group"`
	Paused bool   `json:"paused"`
	// Timers of the front by state: those that are over are there until their rows are stored.
	Pending   int `json:"pending"`
	Firing    int `json:"firing"`
	Done      int `json:"done"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	// Overdue timers are pending past their due time, the first by OldestSeconds.
	Overdue       int     `json:"overdue"`
	OldestSeconds float64 `json:"oldest_overdue_seconds"`
	// LargestSlot is the pending timers of the fullest slot over the mean of all slots: 1 is even.
	LargestSlot float64 `json:"largest_slot_to_mean"`
}

// Status reads the front through, headers only, and returns each group.
func (t *Timers) Status(ctx context.Context) ([]Status, error) {
	groups, err := t.reg.TimerGroups(ctx, t.topic.Name)
	if err != nil {
		return nil, err
	}
	last, err := t.records(ctx, schemas.TimerTopicFilter(t.topic.Name))
	if err != nil {
		return nil, err
	}
	out := make([]Status, len(groups))
	for i := range groups {
		out[i] = summarize(&groups[i], last, time.Now().UnixNano())
	}
	return out, nil
}

func summarize(g *timer.Group, last map[string]*timer.Record, now int64) Status {
	s := Status{Group: g.Name, Paused: g.Paused}
	slots := map[int]int{}
	for _, r := range last {
		if r.Key.Group != g.Name {
			continue
		}
		switch r.State() {
		case timer.StatePending:
			s.Pending++
			slots[r.Key.Slot]++
			if late := float64(now-r.Due) / float64(time.Second); late > 0 {
				s.Overdue++
				s.OldestSeconds = max(s.OldestSeconds, late)
			}
		case timer.StateFiring:
			s.Firing++
		case timer.StateDone:
			s.Done++
		case timer.StateFailed:
			s.Failed++
		case timer.StateCancelled:
			s.Cancelled++
		}
	}
	for _, n := range slots {
		s.LargestSlot = max(s.LargestSlot, float64(n)*float64(g.Slots)/float64(s.Pending))
	}
	return s
}
