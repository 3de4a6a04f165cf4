package exposition

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/almanac-events/almanac/internal/timers/dispatch"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

func text(t *testing.T, all Group) string {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, all); err != nil {
		t.Fatal(err)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	if got, err := parser.TextToMetricFamilies(bytes.NewReader(b.Bytes())); err != nil || len(got) != len(all) {
		t.Errorf("%d families of %d were read back, %v", len(got), len(all), err)
	}
	return b.String()
}

func TestFront(t *testing.T) {
	t.Parallel()
	got := text(t, Front([]Topic{{"timers", []timers.Status{
		{Group: "mails", Pending: 7, Firing: 2, Overdue: 1, OldestSeconds: 1.5, LargestSlot: 2},
		{Group: "bills", Paused: true},
	}}}))
	const want = `# HELP almanac_timers_pending Timers that wait for their time or their next attempt.
# TYPE almanac_timers_pending gauge
almanac_timers_pending{topic="timers",group="bills"} 0
almanac_timers_pending{topic="timers",group="mails"} 7
# HELP almanac_timers_firing Timers that a dispatcher has claimed and calls.
# TYPE almanac_timers_firing gauge
almanac_timers_firing{topic="timers",group="bills"} 0
almanac_timers_firing{topic="timers",group="mails"} 2
# HELP almanac_timers_overdue Pending timers past their due time.
# TYPE almanac_timers_overdue gauge
almanac_timers_overdue{topic="timers",group="bills"} 0
almanac_timers_overdue{topic="timers",group="mails"} 1
# HELP almanac_timers_oldest_overdue_seconds How long the first overdue timer has been due.
# TYPE almanac_timers_oldest_overdue_seconds gauge
almanac_timers_oldest_overdue_seconds{topic="timers",group="bills"} 0
almanac_timers_oldest_overdue_seconds{topic="timers",group="mails"} 1.5
# HELP almanac_timers_group_paused 1 where calls of the group are paused.
# TYPE almanac_timers_group_paused gauge
almanac_timers_group_paused{topic="timers",group="bills"} 1
almanac_timers_group_paused{topic="timers",group="mails"} 0
# HELP almanac_timers_largest_slot_ratio Pending timers of the fullest slot over the mean of all slots: 1 is even.
# TYPE almanac_timers_largest_slot_ratio gauge
almanac_timers_largest_slot_ratio{topic="timers",group="bills"} 0
almanac_timers_largest_slot_ratio{topic="timers",group="mails"} 2
`
	if got != want {
		t.Errorf("got\n%s", got)
	}
	if text(t, Front(nil)) != "" {
		t.Error("there are metrics without a group")
	}
}

func TestDispatcher(t *testing.T) {
	t.Parallel()
	mails := dispatch.GroupID{Topic: "timers", Group: "mails"}
	got := text(t, Dispatcher([]dispatch.Waiting{{Topic: "timers", Group: "mails", Pending: 5, Blocked: 1, Overdue: 2, Oldest: 1500 * time.Millisecond, LargestSlot: 3.2}}, dispatch.Stats{
		Calls:  []dispatch.Calls{{GroupID: mails, Result: timer.Done, Count: 9}, {GroupID: mails, Result: timer.Retry, Count: 1}},
		Errors: map[string]uint64{timer.ErrTimeout: 2, timer.ErrBlocked: 1},
	}))
	for _, want := range []string{
		`almanac_dispatcher_pending{topic="timers",group="mails"} 5`, `almanac_dispatcher_blocked{topic="timers",group="mails"} 1`,
		`almanac_dispatcher_overdue{topic="timers",group="mails"} 2`, `almanac_dispatcher_oldest_overdue_seconds{topic="timers",group="mails"} 1.5`,
		`almanac_dispatcher_largest_slot_ratio{topic="timers",group="mails"} 3.2`, "# TYPE almanac_dispatcher_calls_total counter",
		`almanac_dispatcher_calls_total{topic="timers",group="mails",result="done"} 9`, `almanac_dispatcher_calls_total{topic="timers",group="mails",result="retry"} 1`,
		"almanac_dispatcher_call_errors_total{error=\"blocked-address\"} 1\nalmanac_dispatcher_call_errors_total{error=\"timeout\"} 2\n",
	} {
		if !strings.Contains(got, want+"\n") && !strings.HasSuffix(want, "\n") || !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// TestManyGroups holds that the groups above the bound are one.
func TestManyGroups(t *testing.T) {
	t.Parallel()
	const more = 3
	topic := Topic{Name: "timers"}
	var waiting []dispatch.Waiting
	for i := range MaxGroups + more {
		name := fmt.Sprintf("g%04d", i)
		topic.Groups = append(topic.Groups, timers.Status{Group: name, Pending: 2, OldestSeconds: float64(i)})
		waiting = append(waiting, dispatch.Waiting{Topic: "timers", Group: name, Pending: 2, Oldest: time.Duration(i) * time.Second})
	}
	for prefix, got := range map[string]string{"almanac_timers": text(t, Front([]Topic{topic})), "almanac_dispatcher": text(t, Dispatcher(waiting, dispatch.Stats{}))} {
		if n := strings.Count(got, "\n"+prefix+"_pending{"); n != MaxGroups+1 {
			t.Errorf("%s: %d groups", prefix, n)
		}
		for _, want := range []string{
			fmt.Sprintf("%s_pending{topic=\"\",group=\"(other)\"} %d\n", prefix, 2*more),
			fmt.Sprintf("%s_oldest_overdue_seconds{topic=\"\",group=\"(other)\"} %d\n", prefix, MaxGroups+more-1),
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s", want)
			}
		}
	}
}
