package elastic

import (
	"encoding/json"
	"strconv"
	"time"
)

// AppendResponse writes the answer to a bulk request: one entry for each item, and
// errors true where any is refused. An item without an error was stored.
func AppendResponse(dst []byte, took time.Duration, items []Item) []byte {
	failed := false
	for i := range items {
		failed = failed || items[i].Err != nil
	}
	dst = append(dst, `{"took":`...)
	dst = strconv.AppendInt(dst, took.Milliseconds(), 10)
	dst = append(dst, `,"errors":`...)
	dst = strconv.AppendBool(dst, failed)
	dst = append(dst, `,"items":[`...)
	for i := range items {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = items[i].append(dst)
	}
	return append(dst, `]}`...)
}

func (it *Item) append(dst []byte) []byte {
	id := it.ID
	if id == "" && !it.Event.ID.IsZero() {
		id = it.Event.ID.String()
	}
	dst = append(dst, `{"`...)
	dst = append(dst, it.Action...) // one of actions
	dst = append(dst, `":{"_index":`...)
	dst = appendText(dst, it.Index)
	dst = append(dst, `,"_id":`...)
	if id == "" {
		dst = append(dst, `null`...)
	} else {
		dst = appendText(dst, id)
	}
	if it.Err == nil {
		return append(dst, `,"_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":0,"_primary_term":1,"status":201}}`...)
	}
	dst = append(dst, `,"status":`...)
	dst = strconv.AppendInt(dst, int64(it.Err.Status), 10)
	dst = append(dst, `,"error":{"type":`...)
	dst = appendText(dst, it.Err.Type)
	dst = append(dst, `,"reason":`...)
	dst = appendText(dst, it.Err.Reason)
	return append(dst, `}}}`...)
}

func appendText(dst []byte, s string) []byte {
	if plainText(s) {
		return append(append(append(dst, '"'), s...), '"')
	}
	b, err := json.Marshal(s)
	if err != nil {
		return append(dst, `""`...) // cannot be: it is a string
	}
	return append(dst, b...)
}

// plainText reports whether a text has only what ids and names of indices have as a rule, and JSON
// does not escape. strings.Trim would make a set for each text.
func plainText(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// AppendError writes the answer to a request that is refused as a whole.
func AppendError(dst []byte, e *Error) []byte {
	type cause struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	}
	type refusal struct {
		RootCause []cause `json:"root_cause"`
		cause
	}
	c := cause{e.Type, e.Reason}
	b, err := json.Marshal(struct {
		Error  refusal `json:"error"`
		Status int     `json:"status"`
	}{refusal{[]cause{c}, c}, e.Status})
	if err != nil {
		return dst // cannot be: it is strings and a number
	}
	return append(dst, b...)
}
