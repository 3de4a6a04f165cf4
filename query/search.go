package query

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/schemas"
)

// MaxSearchTopics is how many topics one search reads, each as a page by itself.
const MaxSearchTopics = 8

// SearchRequest asks for a page of the events of several topics, merged by time. Filter and fields must be ones that
// each of them has.
type SearchRequest struct {
	// Topics are 1 to MaxSearchTopics. Their order does not matter.
	Topics    []string
	From, To  time.Time
	Where     string
	Fields    []string
	Limit     int
	Ascending bool
	// Cursor of another page of the same topics, or its Back.
	Cursor string
}

// TopicEvent is an event and the topic that it is of.
type TopicEvent struct {
	Topic string          `json:"topic"`
	Event json.RawMessage `json:"event"`
}

// TopicRead is what one topic of a search had to say.
type TopicRead struct {
	Topic string `json:"topic"`
	// Count is how many of its events are on the page, or were counted.
	Count  uint64   `json:"count"`
	Shards []string `json:"shards"`
	Notice string   `json:"notice,omitempty"`
	Notes  []string `json:"notes,omitempty"`
}

// SearchPage is events of several topics, in the order of (ts, id) over all of them. Cursor and Back are as in Page.
type SearchPage struct {
	Events []TopicEvent `json:"events"`
	Cursor string       `json:"cursor,omitempty"`
	Back   string       `json:"back,omitempty"`
	Topics []TopicRead  `json:"topics"`
}

// SearchCount is how many events several topics have.
type SearchCount struct {
	Count  uint64      `json:"count"`
	Topics []TopicRead `json:"topics"`
}

// Search reads one page of several topics.
func (r *Reader) Search(ctx context.Context, req SearchRequest) (*SearchPage, error) {
	parts, err := req.parts()
	if err != nil {
		return nil, err
	}
	legs, pages := make([]*leg, len(parts)), make([]Page, len(parts))
	g, gctx := fanout.WithContext(ctx)
	for i := range parts {
		g.Go(func() error {
			p, err := r.plan(gctx, parts[i])
			if err == nil {
				legs[i], err = r.leg(gctx, p, &pages[i], nil)
			}
			return ofTopic(parts[i].Topic, err)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for _, l := range legs[1:] {
		if l.p.back != legs[0].p.back {
			return nil, joinRequest(fmt.Errorf("%w: its parts are of different pages", ErrCursor))
		}
	}
	rows, topicOf := merged(legs, legs[0].p.limit)
	out := &SearchPage{Events: []TopicEvent{}, Topics: []TopicRead{}}
	out.Cursor, out.Back = turns(legs, rows)
	if legs[0].p.back {
		slices.Reverse(topicOf)
	}
	for i, page := range pages {
		out.Topics = append(out.Topics, TopicRead{parts[i].Topic, 0, append([]string{}, page.Shards...), page.Notice, page.Notes})
	}
	for i, row := range rows {
		out.Topics[topicOf[i]].Count++
		out.Events = append(out.Events, TopicEvent{parts[topicOf[i]].Topic, row.json})
	}
	return out, nil
}

// SearchCount counts what the pages of a search have. With a cursor that is what pages by it have, so that with the Back
// of a page it is what is newer, or with ascending order what is older.
func (r *Reader) SearchCount(ctx context.Context, req SearchRequest) (*SearchCount, error) {
	parts, err := req.parts()
	if err != nil {
		return nil, err
	}
	counts := make([]*Histogram, len(parts))
	g, gctx := fanout.WithContext(ctx)
	for i, one := range parts {
		g.Go(func() (err error) {
			counts[i], err = r.Histogram(gctx, HistogramRequest{Topic: one.Topic, From: one.From, To: one.To, Where: one.Where, Cursor: one.Cursor})
			return ofTopic(one.Topic, err)
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	out := &SearchCount{Topics: []TopicRead{}}
	for i, h := range counts {
		out.Count += h.Count
		out.Topics = append(out.Topics, TopicRead{parts[i].Topic, h.Count, h.Shards, h.Notice, h.Notes})
	}
	return out, nil
}

// parts are the requests of the single topics, in the order of their names.
func (req *SearchRequest) parts() ([]Request, error) {
	topics := slices.Sorted(slices.Values(req.Topics))
	if len(topics) < 1 || len(topics) > MaxSearchTopics {
		return nil, fmt.Errorf("%w: %d topics, a search is of 1 to %d", schemas.ErrRequest, len(topics), MaxSearchTopics)
	}
	if n := len(slices.Compact(slices.Clone(topics))); n != len(topics) {
		return nil, fmt.Errorf("%w: a topic is named twice: %s", schemas.ErrRequest, strings.Join(topics, ", "))
	}
	cursors := make([]string, len(topics))
	if req.Cursor != "" {
		if cursors = strings.Split(req.Cursor, cursorsSep); len(cursors) != len(topics) || slices.Contains(cursors, "") {
			return nil, joinRequest(fmt.Errorf("%w: it is not one of a search of %d topics; give the last page's cursor and its topics", ErrCursor, len(topics)))
		}
	}
	parts := make([]Request, len(topics))
	for i, topic := range topics {
		parts[i] = Request{
			Topic: topic, From: req.From, To: req.To, Where: req.Where, Fields: req.Fields,
			Limit: cmp.Or(req.Limit, DefaultLimit), Ascending: req.Ascending, Cursor: cursors[i],
		}
	}
	return parts, nil
}

// ofTopic names the topic of an error, as filters and fields differ from one to the other.
func ofTopic(topic string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("topic %s: %w", topic, err)
}
