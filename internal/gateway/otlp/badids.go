package otlp

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// recordIDs are the names of a record's ids in JSON, and how many bytes each has.
var recordIDs = map[string]int{"traceId": 16, "trace_id": 16, "spanId": 8, "span_id": 8}

// withoutBadIDs returns a request of JSON without the ids that are none, and which records had them, by their number
// from 0. It is for requests that the decoder has refused.
func withoutBadIDs(body []byte) (fixed []byte, bad map[int]error) {
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	var request map[string]any
	if in.Decode(&request) != nil {
		return nil, nil
	}
	bad = map[int]error{}
	n := 0
	eachMember(request, func(resource map[string]any) {
		eachMember(resource, func(scope map[string]any) {
			eachMember(scope, func(record map[string]any) {
				for name, size := range recordIDs {
					if why := badID(record[name], size); why != nil {
						bad[n] = why
						delete(record, name)
					}
				}
				n++
			}, "logRecords", "log_records")
		}, "scopeLogs", "scope_logs")
	}, "resourceLogs", "resource_logs")
	fixed, err := json.Marshal(request)
	if err != nil {
		return nil, nil
	}
	return fixed, bad
}

// eachMember calls f with the objects of the list that has one of the names.
func eachMember(of map[string]any, f func(map[string]any), names ...string) {
	for _, name := range names {
		list, _ := of[name].([]any)
		for _, one := range list {
			object, _ := one.(map[string]any)
			f(object)
		}
	}
}

// badID says why a value is not an id of so many bytes; nil for one, and for none.
func badID(v any, size int) error {
	if v == nil || v == "" {
		return nil
	}
	text, is := v.(string)
	if raw, err := hex.DecodeString(text); is && err == nil && len(raw) == size {
		return nil
	}
	return fmt.Errorf("%w: %.40q is not a trace or span id of %d bytes in hex", ErrID, fmt.Sprint(v), size)
}
