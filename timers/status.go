package timers

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/fronts"
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
	// Why timers are overdue by more than a second; empty where none are, or where it is not known.
	Why string `json:"why,omitempty"`
	// LargestSlot is the pending timers of the fullest slot over the mean of all slots: 1 is even.
	LargestSlot float64 `json:"largest_slot_to_mean"`
	// FullestSlot is that slot, the first of several; nil where nothing is pending.
	FullestSlot *int `json:"fullest_slot"`
	// Bytes that the group's records hold of TIMERS.
	Bytes int64 `json:"bytes"`
}

// Status reads the front through, headers only, and returns each group.
func (t *Timers) Status(ctx context.Context) ([]Status, error) {
	groups, err := t.reg.TimerGroups(ctx, t.topic.Name)
	if err != nil {
		return nil, err
	}
	bytes := map[string]int64{}
	last, err := t.records(ctx, schemas.TimerTopicFilter(t.topic.InFronts()), func(r *timer.Record, size int64) { bytes[r.Key.Group] += size })
	if err != nil {
		return nil, err
	}
	use, err := t.w.Use(ctx)
	if err != nil {
		return nil, err
	}
	firing := map[string]int{}
	for _, r := range last {
		if r.State() == timer.StateFiring {
			firing[r.Host]++
		}
	}
	now, err := t.w.Now(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]Status, len(groups))
	for i := range groups {
		s := summarize(&groups[i], last, firing, now)
		if s.Bytes = bytes[s.Group]; s.OldestSeconds > 1 && !s.Paused {
			s.Why = cmp.Or(noSpace(&use), s.Why)
		}
		out[i] = s
	}
	return out, nil
}

// noSpace says what TIMERS has no room for, empty where it has.
func noSpace(u *fronts.Use) string {
	what := ""
	switch {
	case u.Free(fronts.End) < minCallSpace:
		what = "has no room for calls"
	case u.Free(fronts.Change) < minCallSpace:
		what = "has no room for further attempts"
	default:
		return ""
	}
	return fmt.Sprintf("TIMERS holds %s of %s and %s; delete timers, or run `almanac streams apply TIMERS --bytes SIZE`", schemas.FormatBytes(float64(u.Bytes)), schemas.FormatBytes(float64(u.Limit)), what)
}

// minCallSpace holds the claim and the end of one timer with the longest id.
const minCallSpace = 4 << 10

// summarize adds up a group's timers. firing are the calls under way by host, of all groups.
func summarize(g *timer.Group, last map[string]*timer.Record, firing map[string]int, now int64) Status {
	s := Status{Group: g.Name, Paused: g.Paused}
	slots, hosts := map[int]int{}, map[string]int{}
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
				hosts[r.Host]++
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
	if s.OldestSeconds > 1 {
		s.Why = why(g, s.Firing, hosts, firing)
	}
	for slot, n := range slots {
		if s.FullestSlot == nil || n > slots[*s.FullestSlot] || n == slots[*s.FullestSlot] && slot < *s.FullestSlot {
			s.FullestSlot = &slot
		}
		s.LargestSlot = max(s.LargestSlot, float64(n)*float64(g.Slots)/float64(s.Pending))
	}
	return s
}

// why says what holds up a group's overdue timers. inGroup are its calls under way, waiting its overdue
// timers by host, and firing all calls under way by host.
func why(g *timer.Group, inGroup int, waiting, firing map[string]int) string {
	first := ""
	for host, n := range waiting {
		if first == "" || n > waiting[first] || n == waiting[first] && host < first {
			first = host
		}
	}
	switch {
	case g.Paused:
		return "the group is paused"
	case g.MaxConcurrent > 0 && inGroup >= g.MaxConcurrent:
		return fmt.Sprintf("max_concurrent is %d, and so many calls are under way", g.MaxConcurrent)
	case firing[first] >= timer.CallsPerHost:
		return fmt.Sprintf("host %s has %d calls under way, and answers slowly", first, firing[first])
	case inGroup >= timer.Calls/2:
		return fmt.Sprintf("%d calls of the group are under way, and answer slowly; the other calls of a dispatcher are kept for other groups", inGroup)
	case inGroup == 0 && len(firing) == 0:
		return "no call is under way: no dispatcher runs, or it cannot reach NATS"
	case g.MaxPerSecond > 0:
		return fmt.Sprintf("max_per_second is %d", g.MaxPerSecond)
	}
	return ""
}
