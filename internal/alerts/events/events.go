package events

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Attributes of the events.
const (
	AttrTopic  = "topic"
	AttrGroup  = "group" // of the rule, whose name with the group's is the resource
	AttrFrom   = "from"
	AttrBy     = "by"
	AttrValue  = "value"
	AttrCount  = "count"
	AttrSince  = "since"
	AttrReason = "reason"
	AttrCalls  = "calls"    // who is told, JSON
	AttrSum    = "rule_sum" // what the rule meant
	// LabelPrefix begins the attributes of labels, textPrefix those of annotations.
	LabelPrefix = "label."
	textPrefix  = "annotation."
)

// scope is of all events: an audit names whose resource changes, and rules are Almanac's own.
const scope = "alerts"

// Event is a transition as an event.
func Event(n *decide.Notice) (schemas.Event, error) {
	a := audit.Activity{
		Type: string(n.To), Request: n.Key, Scope: scope, Service: "almanac", ResourceType: "alert", Resource: Resource(n.Group, n.Rule),
		Message: cut(cmp.Or(n.Annotations["summary"], n.Annotations["description"], n.Rule)), Time: time.Unix(0, n.At),
		Labels: []schemas.Attr{
			schemas.String(AttrTopic, n.Topic), schemas.String(AttrGroup, n.Group), schemas.String(AttrFrom, string(n.From)), schemas.String(AttrCount, n.Count.String()), schemas.Time(AttrSince, time.Unix(0, n.Since)),
		},
	}
	if n.By != "" {
		a.Labels = append(a.Labels, schemas.String(AttrBy, n.By), schemas.String(AttrValue, n.Value))
	}
	if n.Sum != "" {
		a.Labels = append(a.Labels, schemas.String(AttrSum, n.Sum))
	}
	a.Actor = n.User
	if n.Reason != "" {
		a.Labels = append(a.Labels, schemas.String(AttrReason, n.Reason))
	}
	if len(n.Calls) > 0 {
		var text bytes.Buffer
		as := json.NewEncoder(&text)
		as.SetEscapeHTML(false) // of an address each & would be six bytes
		if err := as.Encode(n.Calls); err != nil {
			return schemas.Event{}, err
		}
		a.Labels = append(a.Labels, schemas.String(AttrCalls, strings.TrimSpace(text.String())))
	}
	for name, v := range n.Labels {
		a.Labels = append(a.Labels, schemas.String(LabelPrefix+name, v))
	}
	for name, v := range n.Annotations {
		a.Labels = append(a.Labels, schemas.String(textPrefix+name, v))
	}
	slices.SortFunc(a.Labels, func(a, b schemas.Attr) int { return cmp.Compare(a.Key, b.Key) })
	return a.Event()
}

// maxMessageBytes bounds the message of an event: it is an annotation, which the event has whole beside it.
const maxMessageBytes = 4 << 10

// cut is a text as a message: its beginning, where it is too long.
func cut(text string) string {
	if len(text) <= maxMessageBytes {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessageBytes], "")
}

// Resource names a rule as events do.
func Resource(group, rule string) string { return group + "/" + rule }

// Read is an event as it was read.
type Read struct {
	Time    time.Time
	State   decide.State
	Key     string
	Rule    string // as Resource names it
	Message string
	Attrs   map[string]string
}

// Names are those of the rule and its group.
func (r *Read) Names() (group, rule string) {
	if group = r.Attrs[AttrGroup]; group != "" { // which may have a / in it
		return group, strings.TrimPrefix(r.Rule, Resource(group, ""))
	}
	group, rule, _ = strings.Cut(r.Rule, "/") // of an earlier version
	return group, rule
}

// prefixed are the labels, or the annotations, of an event.
func (r *Read) prefixed(prefix string) map[string]string {
	out := map[string]string{}
	for k, v := range r.Attrs {
		if name, ok := strings.CutPrefix(k, prefix); ok {
			out[name] = v
		}
	}
	return out
}

// Labels are the labels of the rule then.
func (r *Read) Labels() map[string]string { return r.prefixed(LabelPrefix) }

// Annotations are the annotations of the rule then, filled in.
func (r *Read) Annotations() map[string]string { return r.prefixed(textPrefix) }

// Calls are who was told.
func (r *Read) Calls() (calls []decide.Call) {
	_ = json.Unmarshal([]byte(r.Attrs[AttrCalls]), &calls) // absent: none
	return calls
}

// Parse reads an event as a query gives it.
func Parse(line json.RawMessage) (Read, error) {
	var e struct {
		Ts         time.Time         `json:"ts"`
		Type       string            `json:"type"`
		Request    string            `json:"request_id"`
		Resource   string            `json:"resource"`
		Message    string            `json:"message"`
		Attributes map[string]string `json:"attributes"`
	}
	if err := json.Unmarshal(line, &e); err != nil {
		return Read{}, fmt.Errorf("alerts: an event of %s is not readable: %w", schemas.TopicAlerts, err)
	}
	return Read{Time: e.Ts, State: decide.State(e.Type), Key: e.Request, Rule: e.Resource, Message: e.Message, Attrs: e.Attributes}, nil
}

// Of returns the key of an event of alerts, and whose topic's rule it is of.
func Of(e *schemas.Event) (key, topic string) {
	for i := range e.Attrs {
		switch a := &e.Attrs[i]; a.Key {
		case kinds.ColRequestID:
			key = a.Text()
		case AttrTopic:
			topic = a.Text()
		}
	}
	return key, topic
}

// Late is how much earlier an event's time may be than that of one that was committed before it: rules that are asked for have instants of
// their own, and are answered later.
const Late = 2 * time.Minute

// maxLastBytes bounds the events that Last holds, as JSON.
const maxLastBytes = 64 << 20

// ErrNotYet: ClickHouse does not have all events of alerts yet.
var ErrNotYet = errors.New("the events of alerts are not all stored yet")

// Last reads the last transition of each alert of a topic in a range of time, the newest first. It reads so many transitions at most, and
// takes no longer than within. whole: those were all. ErrNotYet: some cannot be asked for yet. Of an alert that ended more than Late before the
// newest event there are its names and its time alone.
func Last(ctx context.Context, r *query.Reader, topic string, from, to time.Time, most int, within time.Duration) (last []Read, whole bool, err error) {
	type alert struct{ group, rule, value string }
	seen := map[alert]bool{}
	req := query.Request{Topic: schemas.TopicAlerts, From: from, To: to, Where: schemas.ColAttributes + "." + AttrTopic + " = " + filter.Quote(topic), Limit: query.MaxLimit}
	paged, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for n, size := 0, 0; n < most && size < maxLastBytes; {
		page, err := r.Query(paged, req)
		if errors.Is(err, schemas.ErrUnknownTopic) {
			return nil, true, nil
		}
		if err != nil && paged.Err() != nil && ctx.Err() == nil { // a topic of years, of which a page alone takes longer
			return last, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		if len(page.Notes) > 0 { // of a page that is read there is this one alone
			return nil, false, fmt.Errorf("%w: %s", ErrNotYet, strings.Join(page.Notes, "; "))
		}
		for _, line := range page.Events {
			e, err := Parse(line)
			if err != nil {
				return nil, false, err
			}
			group, rule := e.Names()
			if of := (alert{group, rule, e.Attrs[AttrValue]}); !seen[of] {
				seen[of] = true
				if e.State == decide.Inactive && len(last) > 0 && e.Time.Before(last[0].Time.Add(-Late)) {
					e.Message, e.Attrs = "", map[string]string{AttrGroup: e.Attrs[AttrGroup], AttrValue: e.Attrs[AttrValue]}
				} else {
					size += len(line)
				}
				last = append(last, e)
			}
		}
		if page.Cursor == "" {
			return last, true, nil
		}
		n += len(page.Events)
		req.Cursor = page.Cursor
	}
	return last, false, nil
}

// some is how many events one query asks for.
const some = 200

// ByKey reads the events of alerts, by their keys. What an erasure took, and what is not there, is left out.
func ByKey(ctx context.Context, r *query.Reader, alerts []decide.Named) (map[string]Read, error) {
	out := map[string]Read{}
	alerts = slices.SortedFunc(slices.Values(alerts), func(a, b decide.Named) int { return cmp.Compare(a.At, b.At) })
	for part := range slices.Chunk(alerts, some) {
		var keys []string
		for i := range part {
			keys = append(keys, filter.Quote(part[i].Key))
		}
		req := query.Request{
			Topic: schemas.TopicAlerts, From: time.Unix(0, part[0].At), To: time.Unix(0, part[len(part)-1].At+1),
			Where: kinds.ColRequestID + " IN (" + strings.Join(keys, ", ") + ")", Limit: query.MaxLimit, Ascending: true,
		}
		for {
			page, err := r.Query(ctx, req)
			if errors.Is(err, schemas.ErrUnknownTopic) {
				return out, nil
			}
			if err != nil {
				return nil, err
			}
			for _, line := range page.Events {
				e, err := Parse(line)
				if err != nil {
					return nil, err
				}
				out[e.Key] = e
			}
			if page.Cursor == "" {
				break
			}
			req.Cursor = page.Cursor
		}
	}
	return out, nil
}
