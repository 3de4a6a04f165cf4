package evaluate

import (
	"fmt"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/alerts"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/internal/alerts/events"
)

// adopt takes the last transitions of alerts in place of what the job has of them that is older; known are the events of that. It returns
// the newest, whose delivery may have been under way. Nothing before the last of those that counts made is evaluated again: of an
// alert that ended nothing else is known. The instant itself is, for its transitions may be several commits. An alert that the job did not have
// waits for its rule: both may be of an older copy.
func (r *run) adopt(last []events.Read, known map[string]events.Read) (newest []decide.Notice) {
	for i := range last {
		if rr := r.of(last[i].Names()); rr == nil || !rr.rule.Asked() {
			r.state.Decided = max(r.state.Decided, last[i].Time.UnixNano()/int64(decide.Step)*int64(decide.Step)-int64(decide.Step))
		}
	}
	later := map[alert]int64{}
	for i := range last {
		later[alertOf(&last[i])] = last[i].Time.UnixNano()
	}
	newer := map[alert]bool{} // what the job has, after the clock of NATS was set back
	kept := r.state.Alerts[:0:0]
	for _, a := range r.state.Alerts {
		of := alert{group: a.Group, rule: a.Rule} // that of a rule without By, also where its event is gone
		if e, there := known[a.Key]; there {
			of = alertOf(&e)
		}
		if at, there := later[of]; !there || at <= a.At {
			kept = append(kept, a)
			newer[of] = true
		}
	}
	size, left := bytesOf(kept), 0
	for i := range last {
		e := &last[i]
		if newer[alertOf(e)] {
			continue
		}
		n := r.noticeOf(e)
		if !e.Time.Before(last[0].Time.Add(-events.Late)) {
			newest = append(newest, n)
		}
		if e.State != decide.Inactive && (len(kept) >= alerts.MaxTopicAlerts || size+named(&n) > maxAlertBytes) {
			left++
			continue
		}
		if e.State != decide.Inactive {
			// When its condition was last met is not in its event. It may be as late as this, and then it ends no earlier than it should.
			met := max(n.At, r.state.Decided)
			if _, had := known[n.Key]; !had {
				r.state.Rebuilt = time.Now().UnixNano()
			}
			kept = append(kept, decide.Named{Alert: decide.Alert{State: e.State, Since: n.Since, Met: met, At: n.At}, Group: n.Group, Rule: n.Rule, Sum: n.Sum, Key: n.Key})
			size += named(&n)
		}
	}
	if left > 0 {
		r.e.cfg.Hooks.Fault(r.topic.Name, fmt.Errorf("%w: %d alerts that its events have beside %d others; the limits are %d alerts and %d bytes", ErrLeftOut, left, len(kept), alerts.MaxTopicAlerts, maxAlertBytes))
	}
	r.state.Alerts, r.bytes = kept, size
	return newest
}

// alert tells alerts of a topic apart.
type alert struct{ group, rule, value string }

func alertOf(e *events.Read) alert {
	group, rule := e.Names()
	return alert{group, rule, e.Attrs[events.AttrValue]}
}

// noticeOf is a transition as it was delivered, by its event.
func (r *run) noticeOf(e *events.Read) decide.Notice {
	by, value := e.Attrs[events.AttrBy], e.Attrs[events.AttrValue]
	n := decide.Notice{
		Key: e.Key, Topic: r.topic.Name, Sum: e.Attrs[events.AttrSum], By: by, Value: value, User: userOf(by, value), From: decide.State(e.Attrs[events.AttrFrom]), To: e.State,
		At: e.Time.UnixNano(), Since: e.Time.UnixNano(), Reason: e.Attrs[events.AttrReason], Labels: e.Labels(), Annotations: e.Annotations(), Calls: e.Calls(),
	}
	if since, err := time.Parse(time.RFC3339Nano, e.Attrs[events.AttrSince]); err == nil {
		n.Since = since.UnixNano()
	}
	if count, err := strconv.ParseFloat(e.Attrs[events.AttrCount], 64); err == nil {
		n.Count = decide.Number(count)
	}
	n.Group, n.Rule = e.Names()
	if rr := r.of(n.Group, n.Rule); rr != nil && n.Sum == "" && rr.rule.GroupsBy() == by { // an earlier version's events did not say what the rule meant
		n.Sum = rr.rule.Sum()
	}
	return n
}
