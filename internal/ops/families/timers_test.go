package families

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// lines are samples as a scrape has them, in order.
func lines(all []metrics.Sample) (out []string) {
	for _, s := range all {
		out = append(out, fmt.Sprintf("%s %s %v", s.Of.Name, strings.Join(s.Labels, "/"), s.Value))
	}
	slices.Sort(out)
	return out
}

func TestTimers(t *testing.T) {
	t.Parallel()
	got := lines(ofFront([]topicStatus{{"timers", []timers.Status{
		{Group: "mails", Pending: 7, Firing: 2, Overdue: 1, OldestSeconds: 1.5, LargestSlot: 2},
		{Group: "bills", Paused: true},
	}}}))
	want := []string{
		"almanac_timers_firing timers/bills 0", "almanac_timers_firing timers/mails 2",
		"almanac_timers_group_paused timers/bills 1", "almanac_timers_group_paused timers/mails 0",
		"almanac_timers_largest_slot_ratio timers/bills 0", "almanac_timers_largest_slot_ratio timers/mails 2",
		"almanac_timers_oldest_overdue_seconds timers/bills 0", "almanac_timers_oldest_overdue_seconds timers/mails 1.5",
		"almanac_timers_overdue timers/bills 0", "almanac_timers_overdue timers/mails 1",
		"almanac_timers_pending timers/bills 0", "almanac_timers_pending timers/mails 7",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if ofFront(nil) != nil {
		t.Error("there are numbers without a group")
	}
}

func TestDispatcher(t *testing.T) {
	t.Parallel()
	mails := dispatch.GroupID{Topic: "timers", Group: "mails"}
	got := lines(ofDispatcher([]dispatch.Waiting{{Topic: "timers", Group: "mails", Pending: 5, Blocked: 1, Overdue: 2, Oldest: 1500 * time.Millisecond, LargestSlot: 3.2}}, dispatch.Stats{
		Calls:  []dispatch.Calls{{GroupID: mails, Result: timer.Done, Count: 9}, {GroupID: mails, Result: timer.Retry, Count: 1}},
		Errors: map[string]uint64{timer.ErrTimeout: 2, timer.ErrBlocked: 1},
	}))
	want := []string{
		"almanac_dispatcher_blocked timers/mails 1",
		"almanac_dispatcher_call_errors_total blocked-address 1", "almanac_dispatcher_call_errors_total timeout 2",
		"almanac_dispatcher_calls_total timers/mails/done 9", "almanac_dispatcher_calls_total timers/mails/retry 1",
		"almanac_dispatcher_largest_slot_ratio timers/mails 3.2", "almanac_dispatcher_oldest_overdue_seconds timers/mails 1.5",
		"almanac_dispatcher_overdue timers/mails 2", "almanac_dispatcher_pending timers/mails 5",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// TestManyGroups holds that the groups above the bound are one.
func TestManyGroups(t *testing.T) {
	t.Parallel()
	const more = 3
	topic := topicStatus{topic: "timers"}
	var waiting []dispatch.Waiting
	for i := range maxGroups + more {
		name := fmt.Sprintf("g%04d", i)
		topic.groups = append(topic.groups, timers.Status{Group: name, Pending: 2, OldestSeconds: float64(i)})
		waiting = append(waiting, dispatch.Waiting{Topic: "timers", Group: name, Pending: 2, Oldest: time.Duration(i) * time.Second})
	}
	for prefix, all := range map[string][]metrics.Sample{"almanac_timers": ofFront([]topicStatus{topic}), "almanac_dispatcher": ofDispatcher(waiting, dispatch.Stats{})} {
		got := strings.Join(lines(all), "\n") + "\n"
		if n := strings.Count(got, prefix+"_pending "); n != maxGroups+1 {
			t.Errorf("%s: %d groups", prefix, n)
		}
		for _, want := range []string{
			fmt.Sprintf("%s_pending /(other) %d\n", prefix, 2*more),
			fmt.Sprintf("%s_oldest_overdue_seconds /(other) %d\n", prefix, maxGroups+more-1),
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s", want)
			}
		}
	}
}
