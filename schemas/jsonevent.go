package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// AttrRest holds, as one JSON object of flattened names, what a JSON event has
// beyond the limits: attributes after the (MaxAttrs-1)th, and those whose name
// is empty or longer than MaxAttrKeyBytes. Promoted fields and fields with rules
// are not among the former (EventKeys.Topic).
const AttrRest = "almanac_rest"

// MaxJSONFlatten is the depth to which nested objects become dotted names;
// deeper ones stay JSON text. 8 covers every real record met so far (the
// deepest, a GitHub event, needs 6) and bounds the length of names.
const MaxJSONFlatten = 8

// EventKeys says which keys of a record fill Time and UserID, for records that
// use other words than ours. The zero value is what ParseJSONEvent does. A path
// is a key, or the keys of nested objects joined with dots. A named key fills
// the field and stays an attribute as well, so that the record comes out whole;
// the words it replaces (ts, time, …; user_id) are then plain attributes.
type EventKeys struct {
	// Time is the path of the event's time; empty: ts, time, timestamp or
	// @timestamp. A record that lacks a named path is refused: now would be a
	// lie.
	Time string
	// ParseTime reads the text of the time; nil: RFC 3339 in a string, and
	// ParseJSONTime for a number.
	ParseTime func(text string) (time.Time, error)
	// User is the path of UserID; empty: user_id. Where the topic has a rule for
	// user_id, or clears it later, the named key does not stay as an attribute.
	User string
	// Columns, by path, are columns and promoted fields that other keys fill: type by
	// eventName. Such a key does not stay as an attribute under its own name.
	Columns map[string]string
	// Topic, when not nil, is where the event goes: its promoted fields, and the
	// fields of its rules, are taken before the limit on attributes counts.
	Topic *Topic
	// Paths, when not nil, replaces Time, User and Columns: see
	// FieldPaths.
	Paths *FieldPaths
}

// Pair is one named text of a flat record, such as a row of CSV.
type Pair struct{ Key, Value string }

// ParseJSONEvent reads one JSON object as an event, the same one each time.
//
// These keys of the object itself fill a field, the first of several wins:
// ts, time, timestamp or @timestamp (see ParseTime; or a number, see ParseJSONTime),
// id (when a UUID), level, service, type, user_id, trace_id, span_id, message
// or msg; numbers, truth values and arrays are kept as their JSON text, and so is
// an object as message. A time that cannot be read is an error; without one, Time is
// zero, which means now.
//
// All else becomes an attribute: nested objects flattened with dots
// (actor.login, service.name), "attributes" without a prefix; arrays, empty
// objects, objects below MaxJSONFlatten and those with a name above 512 bytes as
// compact JSON text; null is absent.
// Numbers become Int64 or Float64 when those print what was written (or differ only in
// zeros after the point, as 1.0), else the text as written, so that no digit is
// lost. When a name comes twice the second is kept as name#2. What exceeds the
// limits goes to AttrRest.
//
// Bytes that are not UTF-8 are kept as they are, and a lone surrogate escape
// (\ud800) as the three bytes that would encode it; encoding/json would replace
// both by U+FFFD, which is why only its checking is used here.
//
// The error is ErrNotJSON with the byte offset, or ErrJSONEvent with the key.
func ParseJSONEvent(line []byte) (Event, error) { return EventKeys{}.ParseJSON(line) }

// ParseJSON is ParseJSONEvent with other keys.
func (k EventKeys) ParseJSON(line []byte) (Event, error) {
	if !json.Valid(line) {
		return Event{}, notJSON(line)
	}
	w := jsonWalk{b: line, whole: k.Topic}
	w.space()
	if line[w.i] != '{' {
		return Event{}, fmt.Errorf("%w: it is %s, it must be an object", ErrJSONEvent, jsonNoun(line[w.i]))
	}
	w.object("", 1)
	ev, err := k.event(w.leaves)
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrJSONEvent, err)
	}
	k.Topic.alias(&ev)
	return ev, nil
}

// keeps reports whether an object under that name stays whole: that of a field of type
// json. A nil topic does not have one.
func (t *Topic) keeps(name string) bool {
	if t == nil {
		return false
	}
	for i := range t.Fields {
		if f := &t.Fields[i]; f.Type == TypeJSON && f.Takes(name) {
			return true
		}
	}
	return false
}

// FromPairs makes an event of a flat record by the rules of ParseJSONEvent; its
// values are all texts. The error names the key.
func (k EventKeys) FromPairs(pairs []Pair) (Event, error) {
	return k.event(pairLeaves(pairs))
}

func pairLeaves(pairs []Pair) []jsonLeaf {
	leaves := make([]jsonLeaf, len(pairs))
	for i, p := range pairs {
		key, value := quoteJSON(p.Key), quoteJSON(p.Value)
		leaves[i] = jsonLeaf{raw: key[1 : len(key)-1], value: value, top: true}
	}
	return leaves
}

func (k EventKeys) event(leaves []jsonLeaf) (Event, error) {
	if k.Paths != nil {
		return k.byPaths(leaves)
	}
	f := jsonFields{keys: k}
	for _, column := range k.Columns {
		f.named[fieldsByColumn[column]] = true
	}
	for _, l := range leaves {
		if err := f.take(l); err != nil {
			return Event{}, err
		}
	}
	if k.Time != "" && !f.has[fieldTime] {
		return Event{}, fmt.Errorf("it has no %q to take the time from", k.Time)
	}
	if k.User != "" && k.Topic.rulesUser() {
		user := namesUnder([]Private{{Field: ColAttributes + "." + k.User}})
		f.rest = slices.DeleteFunc(f.rest, func(l jsonLeaf) bool {
			_, same := user.rule(l.text)
			return same
		})
	}
	f.ev.Attrs = k.attrs(f.rest)
	return f.ev, nil
}

// rulesUser reports whether user ids do not stay as they come.
func (t *Topic) rulesUser() bool {
	if t == nil {
		return false
	}
	_, ruled := namesUnder(t.PII).rule(ColUserID)
	return ruled || t.Anonymise.On() && slices.Contains(t.Anonymise.Fields, ColUserID)
}

// ParseTime reads a time as RFC 3339 has it, and also without a zone (then UTC), with
// a zone without a colon (+0000), and with a space in place of the T: ISO 8601 as
// programs write it.
func ParseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err == nil {
		return t, nil
	}
	for _, layout := range ISOLayouts[1:] {
		if t, otherErr := time.Parse(layout, text); otherErr == nil {
			return t, nil
		}
	}
	return t, err
}

// ISOLayouts are what ParseTime takes, those without a zone last. A fraction of a
// second may follow the seconds of each.
var ISOLayouts = []string{
	time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05",
}

// ParseJSONTime reads a JSON number as a time since the epoch. The unit is told
// by the size: below 1e11 seconds (to the year 5138), below 1e14 milliseconds,
// below 1e17 microseconds, else nanoseconds. Digits after the point count, to
// the nanosecond. 0 is the epoch, which validation refuses as an unset clock.
func ParseJSONTime(number string) (time.Time, error) {
	whole, frac, _ := strings.Cut(number, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || strings.ContainsAny(frac, "eE") {
		f, err := strconv.ParseFloat(number, 64)
		if err != nil || !(f > -1<<63 && f < 1<<63) {
			return time.Time{}, fmt.Errorf("%q is not a time", number)
		}
		n, frac = int64(f), ""
		if f < 1e11 && f > -1e11 { // seconds with an exponent may have a part
			frac = strconv.FormatFloat(f, 'f', 9, 64)
			frac = frac[strings.IndexByte(frac, '.')+1:]
		}
	}
	unit, digits := int64(time.Second), 9
	switch size := max(n, -n); {
	case size >= 1e17 || size < 0:
		unit, digits = 1, 0
	case size >= 1e14:
		unit, digits = int64(time.Microsecond), 3
	case size >= 1e11:
		unit, digits = int64(time.Millisecond), 6
	}
	part, err := strconv.ParseUint("0"+(frac + "000000000")[:digits], 10, 63)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is not a time", number)
	}
	ns := int64(part)
	if strings.HasPrefix(number, "-") {
		ns = -ns
	}
	per := int64(time.Second) / unit
	return time.Unix(n/per, n%per*unit+ns).UTC(), nil
}

// The fields of an event that a JSON key can fill.
const (
	fieldTime = iota + 1
	fieldID
	fieldLevel
	fieldService
	fieldType
	fieldUserID
	fieldTraceID
	fieldSpanID
	fieldMessage
	fieldCount
)

// wordMsg is a key that means message.
const wordMsg = "msg"

var jsonWords = map[string]int{
	ColTs: fieldTime, "time": fieldTime, "timestamp": fieldTime, "@timestamp": fieldTime,
	ColID: fieldID, ColLevel: fieldLevel, ColService: fieldService, ColType: fieldType,
	ColUserID: fieldUserID, ColTraceID: fieldTraceID, ColSpanID: fieldSpanID,
	ColMessage: fieldMessage, wordMsg: fieldMessage,
}

// jsonFields is an event being filled: has says which fields are, rest is what
// stays for the attributes.
type jsonFields struct {
	keys EventKeys
	ev   Event
	has  [fieldCount]bool
	// named fields are filled by keys.Columns, and not by our words for them.
	named [fieldCount]bool
	rest  []jsonLeaf
}

// take fills the field that the leaf is for, and keeps the leaf for the attributes unless
// the field has all of it.
func (f *jsonFields) take(l jsonLeaf) error {
	l.text = unquoteJSON(l.raw)
	field, moved := f.field(l)
	if column := f.keys.Columns[l.text]; column != "" && fieldsByColumn[column] == 0 {
		l.text, l.raw, l.top = column, []byte(column), false
	}
	if !moved {
		f.rest = append(f.rest, l)
	}
	if field == 0 {
		return nil
	}
	f.has[field] = true
	switch v := l.value.text(); field {
	case fieldTime:
		t, err := f.time(l.value)
		if err != nil {
			return fmt.Errorf("%q: %w", l.text, err)
		}
		f.ev.Time = t
	case fieldID:
		f.ev.ID, _ = ParseID(v) // field checked it
	case fieldLevel:
		f.ev.Level = v
	case fieldService:
		f.ev.Service = v
	case fieldType:
		f.ev.Type = v
	case fieldUserID:
		f.ev.UserID = v
	case fieldTraceID:
		f.ev.TraceID = v
	case fieldSpanID:
		f.ev.SpanID = v
	case fieldMessage:
		f.ev.Message = v
	}
	return nil
}

// field returns the field of the event that the leaf fills, 0 when it is an attribute alone.
// moved reports that the leaf does not stay as an attribute as well.
func (f *jsonFields) field(l jsonLeaf) (field int, moved bool) {
	switch {
	case f.keys.Time != "" && l.text == f.keys.Time && !f.has[fieldTime]:
		return fieldTime, false
	case f.keys.User != "" && l.text == f.keys.User && !f.has[fieldUserID]:
		return fieldUserID, false
	}
	if column := f.keys.Columns[l.text]; column != "" {
		if field = fieldsByColumn[column]; f.has[field] {
			return 0, false // a key that came twice
		}
		return field, field != 0
	}
	if !l.top {
		return 0, false
	}
	field, known := jsonWords[l.text]
	switch {
	case !known || f.has[field] || f.named[field],
		field == fieldTime && f.keys.Time != "",
		field == fieldUserID && f.keys.User != "":
		return 0, false
	case field == fieldID:
		id, err := ParseID(l.value.text())
		if err != nil || id.IsZero() {
			return 0, false
		}
	}
	return field, true
}

func (f *jsonFields) time(v jsonValue) (t time.Time, err error) {
	switch number := v[0] == '-' || v[0] >= '0' && v[0] <= '9'; {
	case f.keys.ParseTime != nil:
		t, err = f.keys.ParseTime(v.text())
	case number:
		t, err = ParseJSONTime(string(v))
	default:
		t, err = ParseTime(v.text())
	}
	if err != nil {
		return time.Time{}, err
	}
	// The year 1, some languages' unset time, must not pass for "now".
	_, err = UnixNs(t)
	return t.UTC(), err
}

func notJSON(line []byte) error {
	var raw json.RawMessage
	err := json.Unmarshal(line, &raw)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("%w: %s at byte %d of %d", ErrNotJSON, syntax.Error(), syntax.Offset, len(line))
	}
	return fmt.Errorf("%w: %w", ErrNotJSON, err)
}

func jsonNoun(c byte) string {
	switch c {
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a truth value"
	case 'n':
		return "null"
	}
	return "a number"
}
