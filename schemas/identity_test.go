package schemas

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// Events of one identity have one lane, by which producer they come and however their values are written; those of others are spread.
func TestOneLaneForAnIdentity(t *testing.T) {
	t.Parallel()
	once := Topic{Name: "orders", OnceBy: []string{"request"}, Fields: []Field{{Name: "request", Type: TypeInt64}}}
	for name, c := range map[string]struct {
		topic Topic
		of    func(n int) []Event // of the nth identity
	}{
		"meter": {Topic{Name: "usage", Kind: kinds.Meter}, func(n int) []Event {
			cause := fmt.Sprint(n)
			return []Event{{Type: "bytes", UserID: "a", Attrs: []Attr{String("space", "s"), String("cause", cause), Int64("delta", 1)}},
				{Type: "bytes", UserID: "b", Attrs: []Attr{Int64("delta", 9), Int64("cause", int64(n)), String("space", "s")}}}
		}},
		"metric": {Topic{Name: "cpu", Kind: kinds.Metric}, func(n int) []Event {
			host := fmt.Sprint(n)
			return []Event{{Type: "load", Attrs: []Attr{String("host", host), String("zone", "z"), Float64("value", 1)}},
				{Type: "load", Attrs: []Attr{Int64("value", 7), String("zone", "z"), Int64("host", int64(n)), String(AttrInvalidUTF8, "message")}}}
		}},
		"audit": {Topic{Name: "audit", Kind: kinds.Audit}, func(n int) []Event {
			r := fmt.Sprint(n)
			return []Event{{Type: "request", Attrs: []Attr{String("request_id", r)}}, {Type: "exit", Attrs: []Attr{String("resource", "x"), String("request_id", r)}}}
		}},
		"once_by": {once, func(n int) []Event {
			return []Event{{UserID: "a", Attrs: []Attr{Int64("request", int64(n))}}, {UserID: "b", Attrs: []Attr{String("request", fmt.Sprint(n))}}, {Attrs: []Attr{Float64("request", float64(n))}}}
		}},
		"once_by of nothing": {Topic{Name: "app", OnceBy: []string{"trace_id"}}, func(n int) []Event {
			if n > 0 {
				return []Event{{TraceID: fmt.Sprint(n)}}
			}
			return []Event{{UserID: "a"}, {UserID: "b", Message: "m"}, {}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			topic := c.topic
			topic.Lanes = 16
			topic, err := topic.Declared()
			if err != nil {
				t.Fatal(err)
			}
			used := map[int]bool{}
			for n := range 200 {
				want := -1
				for k, e := range c.of(n) {
					lane := LaneOf(&topic, &e, int64(k+1), fmt.Sprint("producer ", k))
					if want < 0 {
						want = lane
					}
					if lane != want || topic.CheckLane(&e, int64(k+1), lane) != nil || !errors.Is(topic.CheckLane(&e, int64(k+1), (lane+1)%16), ErrLane) {
						t.Fatalf("identity %d: lane %d of one event and %d of another", n, want, lane)
					}
				}
				used[want] = true
			}
			if len(used) < 12 {
				t.Errorf("200 identities have %d of 16 lanes", len(used))
			}
		})
	}
}

// The events of a front's records have the lanes of their subjects.
func TestLanesOfFronts(t *testing.T) {
	t.Parallel()
	documents, timers := NewTopicOf(kinds.Document, "notes"), NewTopicOf(kinds.Timer, "calls")
	for n := range 200 {
		id := fmt.Sprint("id", n)
		e := Event{Attrs: []Attr{String(kinds.ColDocID, id)}}
		if got := LaneOf(&documents, &e, 1, "p"); got != documents.DocumentLane(id) {
			t.Errorf("document %s: lane %d", id, got)
		}
		key := NewTimerKey("calls", "g", id, 64, timers.Lanes)
		e = Event{Attrs: []Attr{String(kinds.ColTimerID, id), Int64(kinds.ColSlot, int64(key.Slot))}}
		if got := LaneOf(&timers, &e, 1, "p"); got != key.Lane {
			t.Errorf("timer %s: lane %d", id, got)
		}
	}
}

// A lane key must not tell events of one identity apart.
func TestLaneKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		topic Topic
		want  string // "": it is good
	}{
		"a part of once_by":    {Topic{OnceBy: []string{"service", "trace_id"}, LaneBy: []string{"service"}}, ""},
		"as in a log":          {Topic{OnceBy: []string{"trace_id"}, LaneBy: []string{"user_id"}}, `lane_by names "user_id", and events are the same by [trace_id]`},
		"none":                 {Topic{OnceBy: []string{"trace_id"}, LaneBy: []string{}}, "lane_by is empty"},
		"a meter's space":      {Topic{Kind: kinds.Meter, LaneBy: []string{"provider", "space"}}, ""},
		"a meter's customer":   {Topic{Kind: kinds.Meter, LaneBy: []string{"user_id"}}, `lane_by names "user_id"`},
		"labels of a metric":   {Topic{Kind: kinds.Metric, LaneBy: []string{"type", "attributes"}}, ""},
		"a metric's value":     {Topic{Kind: kinds.Metric, LaneBy: []string{"type", "value"}}, `lane_by names "value"`},
		"a document's path":    {Topic{Kind: kinds.Document, LaneBy: []string{"path"}}, "lanes of kind document are cut by [doc_id]"},
		"anything, of a log":   {Topic{LaneBy: []string{"whatever"}}, ""},
		"the producer's, too":  {Topic{LaneBy: []string{}}, ""},
		"an audit's resources": {Topic{Kind: kinds.Audit, LaneBy: []string{"resource"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.topic.Name = "things"
			if _, err := c.topic.Declared(); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		})
	}
}

// The lanes of a live topic stay as they are, and so does what its events' identities are made of.
func TestLanesStay(t *testing.T) {
	t.Parallel()
	hash := Private{Field: "cause", Rule: PrivacyHash}
	for name, c := range map[string]struct {
		lanes  int
		change func(*Topic)
		want   string // "": it may be
	}{
		"more lanes":             {4, func(t *Topic) { t.Lanes = 16 }, "lanes is 4 and cannot become 16; declare another topic and replay into it"},
		"another key":            {4, func(t *Topic) { t.LaneBy = []string{"space"} }, "lane_by is [cause] and cannot become [space]; declare another topic and replay into it"},
		"a rule for the key":     {4, func(t *Topic) { t.PII = []Private{hash} }, "the privacy rule cause:hash changes what its 4 lanes are cut by (cause)"},
		"a rule, with one lane":  {1, func(t *Topic) { t.PII = []Private{hash} }, ""},
		"a rule for another one": {4, func(t *Topic) { t.PII = []Private{{Field: "space", Rule: PrivacyHash}} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			live := NewTopicOf(kinds.Meter, "usage")
			live.Lanes = c.lanes
			want := live
			c.change(&want)
			if _, err := live.Evolve(want); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		})
	}
	metrics := NewTopicOf(kinds.Metric, "cpu")
	metrics.Lanes = 4
	for field, refused := range map[string]bool{"host": true, "attributes.host": true, "message": false, "service": true} {
		want := metrics
		want.PII = []Private{{Field: field, Rule: PrivacyHash}}
		if _, err := metrics.Evolve(want); (err != nil) != refused {
			t.Errorf("a rule for %s of a metric: %v", field, err)
		}
	}
}

// A shard's id says its lane, and ids of a lane are a range.
func TestShardsOfALane(t *testing.T) {
	t.Parallel()
	seen := map[Shard]bool{}
	for lane := range MaxLanes {
		for range 10 {
			s := NewShard(lane)
			if s.Lane() != lane || seen[s] {
				t.Fatalf("shard %s of lane %d", s, lane)
			}
			seen[s] = true
		}
	}
}
