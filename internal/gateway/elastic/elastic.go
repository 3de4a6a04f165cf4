package elastic

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// The attributes that an action gives its document.
const (
	AttrID    = "_id"
	AttrIndex = "_index" // where it differs from the topic
)

// Item is one action of a bulk request with its document.
type Item struct {
	Action string // index, create, update or delete
	Index  string // as the client named it
	ID     string // the client's, or empty
	Topic  string
	Event  schemas.Event
	Err    *Error // nil: Event is good
}

// Options say how to read a bulk request.
type Options struct {
	// Index is the one of the path, for actions that name none.
	Index string
	// Topic returns the descriptor of a topic, or nil when it does not exist.
	Topic func(name string) *schemas.Topic
	// MaxItems bounds the items of a request.
	MaxItems int
}

var paths = rawjson.NewPaths(map[string][]string{
	schemas.ColTs:      {"@timestamp", "time", "timestamp", "ts", "timereported"},
	schemas.ColLevel:   {"level", "log.level", "severity", "priority"},
	schemas.ColService: {"service", "service.name", "program"},
	schemas.ColType:    {"type", "event.action", "event.dataset"},
	schemas.ColUserID:  {"user_id", "user.id", "user.name"},
	schemas.ColTraceID: {"trace_id", "trace.id", "traceId"},
	schemas.ColSpanID:  {"span_id", "span.id", "spanId"},
	schemas.ColMessage: {"message", "msg"},
})

// Decode reads the body of a bulk request.
func Decode(body []byte, o Options) ([]Item, error) {
	items := make([]Item, 0, min(bytes.Count(body, []byte{'\n'})/2+1, len(body)/usualItem+1, o.MaxItems))
	topics := map[string]target{}
	var last []byte // action line, and what it says: most clients write the same one each time
	var said Item
	for line := 1; len(body) > 0; line++ {
		var action []byte
		if action, body = cutLine(body); len(bytes.TrimSpace(action)) == 0 {
			continue
		}
		if last == nil || !bytes.Equal(action, last) {
			var err error
			if said, err = readAction(action); err != nil {
				return nil, fmt.Errorf("%w: malformed action/metadata line [%d]: %w", ErrBulk, line, err)
			}
			last = action
		}
		it := said
		if len(items) == o.MaxItems {
			return nil, fmt.Errorf("%w: more than %d items; send fewer at once", ErrTooLarge, o.MaxItems)
		}
		if it.Index == "" {
			it.Index = o.Index
		}
		var document []byte
		if it.Action != "delete" {
			if len(body) == 0 {
				return nil, fmt.Errorf("%w: line %d is an action without its document", ErrBulk, line)
			}
			line++
			document, body = cutLine(body)
		}
		it.fill(document, o.Topic, topics)
		items = append(items, it)
	}
	if len(items) == 0 {
		return nil, fmt.Errorf("%w: request body is required", ErrBulk)
	}
	return items, nil
}

// usualItem is how many bytes an item has at least, as a rule: an action and its document.
const usualItem = 64

// target is the topic of an index; nil for none.
type target struct{ topic *schemas.Topic }

// fill makes the item's event, or says why it is refused. seen spares asking for
// each item of the same index.
func (it *Item) fill(document []byte, topic func(string) *schemas.Topic, seen map[string]target) {
	switch {
	case it.Action == "update" || it.Action == "delete":
		it.Err = noUpdates(it.Action)
		return
	case it.Index == "":
		it.Err = noIndex()
		return
	}
	to, ok := seen[it.Index]
	if !ok {
		to.topic = TopicOf(it.Index, topic)
		seen[it.Index] = to
	}
	if to.topic == nil {
		it.Err = unknownIndex(it.Index)
		return
	}
	it.Topic = to.topic.Name
	var pairs []rawjson.Pair
	if it.ID != "" {
		pairs = append(pairs, rawjson.Pair{Key: AttrID, Value: it.ID})
	}
	if it.Index != it.Topic {
		pairs = append(pairs, rawjson.Pair{Key: AttrIndex, Value: it.Index})
	}
	ev, err := rawjson.Keys{Paths: paths, Topic: to.topic}.FromRecord(pairs, string(document))
	if err != nil {
		it.Err = badDocument(err)
		return
	}
	it.Event = ev
}

// metadata is what an action says of its document. The rest, such as the _type of
// old clients and routing, means nothing here.
type metadata struct {
	Index string          `json:"_index"`
	ID    json.RawMessage `json:"_id"`
}

var actions = []string{"create", "delete", "index", "update"}

// readAction reads an action line. Keys beside the action mean nothing: winston's
// client counts its attempts there.
func readAction(line []byte) (Item, error) {
	var in map[string]json.RawMessage
	if err := json.Unmarshal(line, &in); err != nil {
		return Item{}, err
	}
	var it Item
	for _, action := range actions {
		raw, ok := in[action]
		if !ok {
			continue
		}
		if it.Action != "" {
			return Item{}, fmt.Errorf("it has both %s and %s", it.Action, action)
		}
		var m metadata
		if err := json.Unmarshal(raw, &m); err != nil {
			return Item{}, err
		}
		it = Item{Action: action, Index: m.Index}
		if len(m.ID) > 0 && string(m.ID) != "null" {
			it.ID = rawjson.Text(m.ID)
		}
	}
	if it.Action == "" {
		return it, fmt.Errorf("expected an object with one of %q", actions)
	}
	return it, nil
}

// cutLine cuts the first line off, without its end.
func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte{'\n'})
	return bytes.TrimSuffix(line, []byte{'\r'}), rest
}
