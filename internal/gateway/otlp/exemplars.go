package otlp

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
)

// Fields of an exemplar, and how many bytes its ids have.
var exemplarIDs = map[protowire.Number]int{4: 8, 5: 16}

// exemplars are the fields on the way to the exemplars of a request, which are messages without any.
var exemplars = func() message {
	is := message{}
	metric := message{5: {1: {5: is}}, 7: {1: {5: is}}, 9: {1: {8: is}}, 10: {1: {11: is}}} // gauge, sum, histogram, exponential_histogram
	scope := message{2: metric}
	return message{1: {resourceScopes: scope, resourceOldScopes: scope}}
}()

// withoutBadExemplars returns a request of protobuf without the exemplars whose trace or span id is none, and how
// many these are. It is for requests that the decoder has refused, and that checkProto has not.
func withoutBadExemplars(b []byte, m message) (kept []byte, bad int) {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		size := -1
		if n >= 0 {
			size = protowire.ConsumeFieldValue(number, kind, b[n:])
		}
		if size < 0 {
			return append(kept, b...), bad // the decoder says what is wrong
		}
		tag, value := b[:n], b[n:n+size]
		b = b[n+size:]
		inner, on := m[number]
		switch {
		case !on || kind != protowire.BytesType:
			kept = append(append(kept, tag...), value...)
		case len(inner) == 0 && badExemplar(unwrapped(value)):
			bad++
		default:
			text, some := unwrapped(value), 0
			if len(inner) > 0 {
				text, some = withoutBadExemplars(text, inner)
			}
			bad += some
			kept = protowire.AppendBytes(append(kept, tag...), text)
		}
	}
	return kept, bad
}

// unwrapped returns what a field has behind its length.
func unwrapped(value []byte) []byte {
	text, _ := protowire.ConsumeBytes(value)
	return text
}

// badExemplar reports whether an exemplar has an id of a wrong length.
func badExemplar(b []byte) bool {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}
		size := protowire.ConsumeFieldValue(number, kind, b[n:])
		if size < 0 {
			return false
		}
		if want := exemplarIDs[number]; want > 0 && kind == protowire.BytesType {
			if id := unwrapped(b[n : n+size]); len(id) != 0 && len(id) != want {
				return true
			}
		}
		b = b[n+size:]
	}
	return false
}

// withoutBadExemplarsJSON is withoutBadExemplars for JSON.
func withoutBadExemplarsJSON(body []byte) (kept []byte, bad int) {
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	var request map[string]any
	if in.Decode(&request) != nil {
		return nil, 0
	}
	eachMember(request, func(resource map[string]any) {
		eachMember(resource, func(scope map[string]any) {
			eachMember(scope, func(metric map[string]any) {
				for _, data := range metric {
					if object, ok := data.(map[string]any); ok {
						eachMember(object, func(point map[string]any) { bad += dropExemplars(point) }, "dataPoints", "data_points")
					}
				}
			}, "metrics")
		}, "scopeMetrics", "scope_metrics")
	}, "resourceMetrics", "resource_metrics")
	kept, err := json.Marshal(request)
	if err != nil {
		return nil, 0
	}
	return kept, bad
}

// dropExemplars takes the exemplars with a bad id out of a data point, and returns how many these were.
func dropExemplars(point map[string]any) (bad int) {
	list, _ := point["exemplars"].([]any)
	kept := make([]any, 0, len(list))
	for _, one := range list {
		exemplar, _ := one.(map[string]any)
		wrong := false
		for name, size := range recordIDs {
			wrong = wrong || badID(exemplar[name], size) != nil
		}
		if wrong {
			bad++
			continue
		}
		kept = append(kept, one)
	}
	if bad > 0 {
		point["exemplars"] = kept
	}
	return bad
}
