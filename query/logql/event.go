package logql

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// entry makes an entry of an event as a page gives it.
func (f *topicFields) entry(event []byte) (*Entry, error) {
	d := json.NewDecoder(bytes.NewReader(event))
	d.UseNumber()
	var all map[string]any
	if err := d.Decode(&all); err != nil {
		return nil, fmt.Errorf("logql: an event is not JSON: %w", err)
	}
	text, _ := all[schemas.ColTs].(string)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return nil, fmt.Errorf("logql: an event has the time %q: %w", text, err)
	}
	e := &Entry{Ts: at.UnixNano(), Stream: map[string]string{LabelTopic: f.topic.Name}, Structured: map[string]string{}}
	e.Line, _ = all[schemas.ColMessage].(string)
	e.topic = f.topic.Name
	e.id, _ = all[schemas.ColID].(string)
	delete(all, schemas.ColTs)
	delete(all, schemas.ColMessage)
	attributes, _ := all[schemas.ColAttributes].(map[string]any)
	delete(all, schemas.ColAttributes)
	for _, from := range []map[string]any{all, attributes} {
		for _, name := range slices.Sorted(maps.Keys(from)) { // so that of two with one label the same one always has it
			value, ok := jsonText(from[name])
			if !ok || value == "" {
				continue
			}
			label := LabelName(name)
			switch {
			case label == LabelTopic: // the topic's own
			case f.stream(label):
				if _, have := e.Stream[label]; !have {
					e.Stream[label] = value
				}
			default:
				if _, have := e.Structured[label]; !have {
					e.Structured[label] = value
				}
			}
		}
	}
	return e, nil
}
