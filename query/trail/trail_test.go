package trail

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

var noon = time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)

// ev is an event of a change, at a second, with an id.
func ev(state string, second, id int) Event {
	e := Event{Time: noon.Add(time.Duration(second) * time.Second), Type: kinds.TypeChange, State: state, Facts: Facts{RequestID: "r", Scope: "s", Resource: "x"}}
	e.ID[15] = byte(id)
	return e
}

func TestFold(t *testing.T) {
	with := func(e Event, before, after string) Event {
		e.Before, e.After = Body(before), Body(after)
		return e
	}
	for name, c := range map[string]struct {
		events        []Event
		state         string
		disputed      bool
		open          bool // ten minutes after the last
		before, after Body
	}{
		"announced":                     {[]Event{ev("pre_committed", 0, 1)}, "pre_committed", false, true, "", ""},
		"announced again":               {[]Event{ev("pre_committed", 0, 1), ev("pre_committed", 5, 2)}, "pre_committed", false, true, "", ""},
		"committed":                     {[]Event{ev("pre_committed", 0, 1), ev("committed", 1, 2)}, "committed", false, false, "", ""},
		"rolled back at that instant":   {[]Event{ev("pre_committed", 0, 2), ev("rolled_back", 0, 1)}, "rolled_back", false, false, "", ""},
		"concluded before by the clock": {[]Event{ev("committed", 0, 1), ev("pre_committed", 1, 2)}, "committed", false, false, "", ""},
		"both":                          {[]Event{ev("pre_committed", 0, 1), ev("committed", 1, 2), ev("rolled_back", 2, 3)}, "rolled_back", true, false, "", ""},
		"recorded after the fact":       {[]Event{ev("", 0, 1)}, "", false, false, "", ""},
		"bodies": {[]Event{with(ev("pre_committed", 0, 1), "1", "2"), with(ev("committed", 1, 2), "", "3")}, "committed", false, false,
			"1", "3"},
		"bodies of the announcement": {[]Event{with(ev("pre_committed", 0, 1), "1", "2"), ev("committed", 1, 2)}, "committed", false, false, "1", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			events := once(append([]Event{}, c.events...))
			e := fold(events)
			last := events[len(events)-1].Time
			if e.State != c.state || e.Disputed != c.disputed || e.Before != c.before || e.After != c.after || (e.Ended == nil) != c.open {
				t.Errorf("%+v", e)
			}
			if open(events, last.Add(10*time.Minute)) != c.open || open(events, last.Add(-time.Second)) {
				t.Errorf("open is not %v", c.open)
			}
		})
	}
}

// Copies are dropped within their instant, and the last instant waits for more.
func TestInstants(t *testing.T) {
	text := func(events []Event) string {
		var out []string
		for _, e := range events {
			out = append(out, fmt.Sprintf("%s%d", e.State[:1], e.ID[15]))
		}
		return strings.Join(out, " ")
	}
	// The newest first, as pages are.
	events := []Event{ev("committed", 2, 9), ev("pre_committed", 1, 8), ev("rolled_back", 1, 7), ev("pre_committed", 1, 6), ev("pre_committed", 0, 5), ev("pre_committed", 0, 4)}
	for name, c := range map[string]struct {
		last        bool
		whole, held string
	}{
		"more may follow": {false, "c9 r7 p6", "p5 p4"},
		"the end":         {true, "c9 r7 p6 p4", ""},
	} {
		t.Run(name, func(t *testing.T) {
			whole, held := instants(append([]Event{}, events...), c.last)
			if text(whole) != c.whole || text(held) != c.held {
				t.Errorf("%s | %s, want %s | %s", text(whole), text(held), c.whole, c.held)
			}
		})
	}
	if whole, held := instants(append([]Event{}, events[4:]...), false); len(whole) != 0 || len(held) != 2 {
		t.Errorf("one instant: %s | %s", text(whole), text(held))
	}
}

func TestCheckRequest(t *testing.T) {
	good := func(change func(*Request)) Request {
		r := Request{Topic: "trail", Scopes: []string{"s"}, RequestID: "r"}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		req  Request
		says string // empty: it is good
	}{
		"a request":                     {good(func(*Request) {}), ""},
		"a resource":                    {good(func(r *Request) { r.RequestID, r.Resource = "", "x" }), ""},
		"an actor":                      {good(func(r *Request) { r.RequestID, r.Actors = "", []string{"u"} }), ""},
		"service and resource type":     {good(func(r *Request) { r.RequestID, r.Service, r.ResourceType = "", "iam", "role" }), ""},
		"what is open":                  {good(func(r *Request) { r.RequestID, r.Open = "", true }), ""},
		"nothing":                       {good(func(r *Request) { r.RequestID = "" }), Selections},
		"a service alone":               {good(func(r *Request) { r.RequestID, r.Service = "", "iam" }), Selections},
		"a method alone":                {good(func(r *Request) { r.RequestID, r.Method = "", "Get" }), Selections},
		"without a scope":               {good(func(r *Request) { r.Scopes = nil }), "within a scope"},
		"an empty scope":                {good(func(r *Request) { r.Scopes = []string{"s", ""} }), "within a scope"},
		"too large a page":              {good(func(r *Request) { r.Limit = MaxLimit + 1 }), "limit is 1001"},
		"a topic that cannot be":        {good(func(r *Request) { r.Topic = "No" }), "bad topic name"},
		"attributes":                    {good(func(r *Request) { r.Where = "attributes.a = '1'" }), "needs service and method"},
		"attributes within":             {good(func(r *Request) { r.Where = "NOT (state = '' AND exists attributes.a)" }), "needs service and method"},
		"attributes, all that it needs": {good(func(r *Request) { r.Where, r.Service, r.Method = "attributes.a = '1'", "iam", "Get" }), ""},
		"not a filter":                  {good(func(r *Request) { r.Where = "scope =" }), "bad request"},
	} {
		t.Run(name, func(t *testing.T) {
			topic := schemas.NewTopicOf(kinds.Audit, "trail")
			err := c.req.check()
			if err == nil {
				_, err = c.req.where(&topic, noon)
			}
			if c.says == "" != (err == nil) || err != nil && (!errors.Is(err, schemas.ErrRequest) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// No text of a request becomes another condition.
func TestFilterQuotes(t *testing.T) {
	r := Request{Scopes: []string{"s' OR scope != '"}, RequestID: `\' OR true`, Actors: []string{"u'"}}
	topic := schemas.NewTopicOf(kinds.Audit, "trail")
	got := r.filter("")
	other := Request{Where: got}
	text, err := other.where(&topic, noon)
	if err != nil || strings.Contains(text, " OR scope") && !strings.Contains(text, `s\' OR scope`) {
		t.Errorf("%s, %v", got, err)
	}
}
