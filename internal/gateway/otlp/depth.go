package otlp

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxDepth bounds how deep values may nest. The decoder recurses once for each level, and
// a stack that overflows ends the process.
const maxDepth = 16

// jsonDepth is how deep JSON with values of maxDepth nests: each is three brackets.
const jsonDepth = 16 + 3*maxDepth

var errTooDeep = fmt.Errorf("values nest deeper than %d levels", maxDepth)

// checkJSON refuses JSON that nests too deep, and more than one value: the decoder reads the first
// and no further. Whether it is JSON at all is the decoder's.
func checkJSON(body []byte) error {
	depth, text, over := 0, false, false
	room := manyMessages + len(body)/objectBytes
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case over:
			if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
				return fmt.Errorf("there is more at byte %d, after the end of the request: send one request in each body", i)
			}
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > jsonDepth {
				return errTooDeep
			}
			if c == '{' {
				room--
			}
			if room < 0 {
				return errManyMessages
			}
		case c == '}' || c == ']':
			depth--
			over = depth <= 0
		}
	}
	return nil
}

// message says which fields of a protobuf message hold further messages.
type message map[protowire.Number]message

// exportRequest and metricsRequest are where an export request of logs, and one of metrics,
// holds values.
var (
	exportRequest  = shape()
	metricsRequest = shapeOfMetrics()
)

// values are the messages of values and of attributes.
func values() (anyValue, keyValue message) {
	anyValue = message{}
	keyValue = message{2: anyValue}
	anyValue[5] = message{1: anyValue} // array_value.values
	anyValue[6] = message{1: keyValue} // kvlist_value.values
	return anyValue, keyValue
}

func shape() message {
	anyValue, keyValue := values()
	logRecord := message{5: anyValue, 6: keyValue}
	scopeLogs := message{1: message{3: keyValue}, 2: logRecord}
	return message{1: message{1: message{1: keyValue}, resourceScopes: scopeLogs, resourceOldScopes: scopeLogs}}
}

func shapeOfMetrics() message {
	_, keyValue := values()
	exemplar := message{7: keyValue}
	metric := message{
		5:  message{1: message{7: keyValue, 5: exemplar}},  // gauge.data_points
		7:  message{1: message{7: keyValue, 5: exemplar}},  // sum
		9:  message{1: message{9: keyValue, 8: exemplar}},  // histogram
		10: message{1: message{1: keyValue, 11: exemplar}}, // exponential_histogram
		11: message{1: message{7: keyValue}},               // summary
		12: keyValue,                                       // metadata
	}
	scopeMetrics := message{1: message{3: keyValue}, 2: metric}
	return message{1: message{1: message{1: keyValue}, resourceScopes: scopeMetrics, resourceOldScopes: scopeMetrics}}
}

// checkProto refuses protobuf that nests too deep, and such as has so many messages in so few
// bytes that most of them say nothing: decoded, each takes some hundred bytes.
func checkProto(body []byte, m message) error {
	room := manyMessages + len(body)/messageBytes
	return checkMessage(body, m, 8+3*maxDepth, &room)
}

const (
	// manyMessages may have any size, and of others one in messageBytes: a number in a list takes
	// four bytes at least, an attribute with a name of one letter and no value seven for two messages.
	manyMessages = 100_000
	messageBytes = 3
	// objectBytes is the same of objects of JSON: {"key":"a","value":{}} has eleven for each.
	objectBytes = 8
)

var errManyMessages = errors.New("it has more empty values than others")

func checkMessage(b []byte, m message, depth int, room *int) error {
	if depth == 0 {
		return errTooDeep
	}
	if *room--; *room < 0 {
		return errManyMessages
	}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errNotProto
		}
		b = b[n:]
		inner, holds := m[number]
		if !holds || kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
				return errNotProto
			}
			b = b[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(b)
		if n < 0 {
			return errNotProto
		}
		if err := checkMessage(v, inner, depth-1, room); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

var errNotProto = errors.New("not protobuf")
