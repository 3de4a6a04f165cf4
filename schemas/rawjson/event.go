package rawjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/internal/jsonwalk"
)

// Keys says which keys of a record fill Time and UserID, for records that
// use other words than ours. The zero value is what Parse does. A path
// is a key, or the keys of nested objects joined with dots. A named key fills
// the field and stays an attribute as well, so that the record comes out whole;
// the words it replaces (ts, time, …; user_id) are then plain attributes.
type Keys struct {
	// Times are the paths of the event's time, of which the first that a record has counts; none: ts, time,
	// timestamp or @timestamp. A record that lacks all named paths is refused, unless Untimed is set.
	Times []string
	// Untimed takes a record without a time, which means now.
	Untimed bool
	// ParseTime reads the text of the time; nil: RFC 3339 in a string, and
	// schemas.ParseJSONTime for a number.
	ParseTime func(text string) (time.Time, error)
	// User is the path of UserID; empty: user_id. Where the topic has a rule for
	// user_id, or clears it later, the named key does not stay as an attribute.
	User string
	// Columns, by path, are columns and promoted fields that other keys fill: type by
	// eventName. Such a key does not stay as an attribute under its own name.
	Columns map[string]string
	// Topic, when not nil, is where the event goes: its promoted fields, and the
	// fields of its rules, are taken before the limit on attributes counts.
	Topic *schemas.Topic
	// Paths, when not nil, replaces Times, User and Columns.
	Paths *Paths
}

// Pair is one named text of a flat record, such as a row of CSV.
type Pair struct{ Key, Value string }

// Parse reads one JSON object as an event, the same one each time.
//
// These keys of the object itself fill a field, the first of several wins:
// ts, time, timestamp or @timestamp (see schemas.ParseTime; or a number, see schemas.ParseJSONTime),
// id (when a UUID), level, service, type, user_id, trace_id, span_id, message
// or msg; numbers, truth values and arrays are kept as their JSON text, and so is
// an object as message. A time that cannot be read is an error; without one, Time is
// zero, which means now. A level is stored as Level has it; without one, severity, levelname or
// log.level with a word for a level fills it, and stays an attribute. The object {"$date": …} of MongoDB is a time too, any other object is not.
//
// A line as replay, query and tail print it is the event that it was: its month, shard and pos, which say where it was
// stored, are left out. It is one when it has all three, an id, and a time of that month.
//
// All else becomes an attribute: nested objects flattened with dots
// (actor.login, service.name), "attributes" without a prefix; arrays, empty
// objects, objects below schemas.MaxJSONFlatten and those with a name above 512 bytes as
// compact JSON text; null is absent.
// Numbers become Int64 or Float64 when those print what was written (or differ only in
// zeros after the point, as 1.0), else the text as written, so that no digit is
// lost. When a name comes twice the second is kept as name#2. What exceeds the
// limits goes to schemas.AttrRest.
//
// Bytes that are not UTF-8 are kept as they are, and a lone surrogate escape
// (\ud800) as the three bytes that would encode it; encoding/json would replace
// both by U+FFFD. What is JSON and what is not is as encoding/json has it.
//
// The error is schemas.ErrNotJSON with the byte offset, or schemas.ErrJSONEvent with the key.
func Parse(line []byte) (schemas.Event, error) { return Keys{}.Parse(line) }

// Parse is the function Parse with other keys.
func (k Keys) Parse(line []byte) (schemas.Event, error) { return k.ParseText(string(line)) }

// ParseText is Parse of a text, whose memory the event's texts share.
func (k Keys) ParseText(line string) (schemas.Event, error) {
	kept := takeLeaves()
	w := flattener{text: line, leaves: *kept, whole: k.Topic}
	defer func() { giveLeaves(kept, w.leaves) }()
	if err := w.document(); err != nil {
		return schemas.Event{}, err
	}
	ev, err := k.event(w.leaves)
	if err != nil {
		return schemas.Event{}, fmt.Errorf("%w: %w", schemas.ErrJSONEvent, err)
	}
	k.Topic.Alias(&ev)
	return ev, nil
}

// FromPairs makes an event of a flat record by the rules of Parse; its
// values are all texts. The error names the key.
func (k Keys) FromPairs(pairs []Pair) (schemas.Event, error) {
	return k.event(appendPairs(make([]leaf, 0, len(pairs)), pairs))
}

func appendPairs(leaves []leaf, pairs []Pair) []leaf {
	for _, p := range pairs {
		key := jsonwalk.Quote(p.Key)
		leaves = append(leaves, leaf{raw: key[1 : len(key)-1], value: jsonwalk.Raw(jsonwalk.Quote(p.Value)), top: true})
	}
	return leaves
}

// event makes an event of leaves, which it changes.
func (k Keys) event(leaves []leaf) (schemas.Event, error) {
	if k.Paths != nil {
		return k.byPaths(leaves)
	}
	f := fields{keys: k, rest: leaves[:0], timeRank: len(k.Times)}
	for _, column := range k.Columns {
		f.named[fieldsByColumn[column]] = true
	}
	for i := range leaves {
		if err := f.take(leaves[i]); err != nil {
			return schemas.Event{}, err
		}
	}
	switch {
	case f.has[fieldTime]:
	case f.object != "":
		return schemas.Event{}, fmt.Errorf("%q is an object, it must be a time; name another key that has it", f.object)
	case len(k.Times) > 0 && !k.Untimed:
		return schemas.Event{}, fmt.Errorf("%w: it has no %s to take the time from", ErrNoTime, oneOf(k.Times))
	}
	if k.User != "" && k.Topic.RulesUser() {
		user := schemas.NamedUnder(schemas.ColAttributes + "." + k.User)
		f.rest = slices.DeleteFunc(f.rest, func(l leaf) bool { return user(l.text) })
	}
	if k.levels() {
		f.setLevel()
	}
	if f.printed() {
		f.rest = slices.DeleteFunc(f.rest, func(l leaf) bool { return l.top && placeOf(l.text) != 0 })
	}
	f.ev.Attrs = k.attrs(f.rest)
	return f.ev, nil
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

// ourWord is one of our own keys, and the field that it fills.
type ourWord struct {
	key   string
	field int
}

// maxWordBytes is above the longest of our own keys, @timestamp; a longer one would end the program as it starts.
const maxWordBytes = 16

// wordsByLength holds our own keys by their length: they are looked up for each leaf.
var wordsByLength = func() (words [maxWordBytes][]ourWord) {
	for word, column := range schemas.JSONWords {
		field := fieldsByColumn[column]
		if column == schemas.ColID {
			field = fieldID
		}
		words[len(word)] = append(words[len(word)], ourWord{word, field})
	}
	return words
}()

// fieldOfWord returns the field that one of our own keys fills, 0 for any other key.
func fieldOfWord(key string) int {
	if len(key) < len(wordsByLength) {
		for _, w := range wordsByLength[len(key)] {
			if w.key == key {
				return w.field
			}
		}
	}
	return 0
}

// fields is an event being filled: has says which fields are, rest is what
// stays for the attributes. It is written over the leaves that were taken.
type fields struct {
	keys Keys
	ev   schemas.Event
	has  [fieldCount]bool
	// timeRank is the place in keys.Times of the key that the time is from.
	timeRank int
	// object is one of our words for the time whose value is an object.
	object string
	// level is the value that filled the level, as it was written.
	level jsonwalk.Raw
	// place has a bit for each key that is what Almanac prints of where an event is stored; month is one of them.
	place int
	month schemas.Month
	// named fields are filled by keys.Columns, and not by our words for them.
	named [fieldCount]bool
	rest  []leaf
}

// take fills the field that the leaf is for, and keeps the leaf for the attributes unless
// the field has all of it.
func (f *fields) take(l leaf) error {
	l.text = jsonwalk.Unquote(l.raw)
	field, moved := f.field(l)
	if column := f.keys.Columns[l.text]; column != "" && fieldsByColumn[column] == 0 {
		l.text, l.raw, l.top = column, column, false
	}
	if !moved {
		f.rest = append(f.rest, l)
		if l.top {
			f.placed(&l)
		}
	}
	if field == 0 {
		return nil
	}
	f.has[field] = true
	switch v := l.value.Text(); field {
	case fieldTime:
		t, err := f.keys.timeAt(l)
		if err != nil {
			return fmt.Errorf("%q: %w", l.text, err)
		}
		f.ev.Time = t
		if i := slices.Index(f.keys.Times, l.text); i >= 0 {
			f.timeRank = i
		}
	case fieldID:
		f.ev.ID, _ = schemas.ParseID(v) // field checked it
	case fieldLevel:
		f.ev.Level, f.level = v, l.value
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
func (f *fields) field(l leaf) (field int, moved bool) {
	switch {
	case len(f.keys.Times) > 0 && slices.Contains(f.keys.Times[:f.timeRank], strings.TrimSuffix(l.text, dateKey)):
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
		return f.nested(l)
	}
	field = fieldOfWord(l.text)
	switch {
	case field == 0 || f.has[field] || f.named[field],
		field == fieldTime && len(f.keys.Times) > 0,
		field == fieldUserID && f.keys.User != "":
		return 0, false
	case field == fieldID:
		id, err := schemas.ParseID(l.value.Text())
		if err != nil || id.IsZero() {
			return 0, false
		}
	}
	return field, true
}

// nested is field of a leaf below the object itself: a time may be there.
func (f *fields) nested(l leaf) (field int, moved bool) {
	if len(f.keys.Times) > 0 || f.has[fieldTime] || l.text == "" || l.text[0] != 't' && l.text[0] != '@' {
		return 0, false
	}
	word, rest, _ := strings.Cut(l.text, ".")
	switch {
	case fieldOfWord(word) != fieldTime || rest == "":
	case "."+rest == dateKey, "."+rest == dateKey+longKey:
		return fieldTime, true
	default:
		f.object = word
	}
	return 0, false
}

// The keys under which MongoDB's extended JSON has a time: a text, or milliseconds since 1970.
const dateKey, longKey = ".$date", ".$numberLong"

// timeAt reads the time that a leaf holds.
func (k *Keys) timeAt(l leaf) (time.Time, error) {
	if number := l.value.Text(); strings.Contains(l.text, dateKey) && strings.Trim(number, "-0123456789") == "" {
		ms, err := strconv.ParseInt(number, 10, 64)
		if err == nil {
			_, err = schemas.UnixNs(time.UnixMilli(ms))
		}
		return time.UnixMilli(ms).UTC(), err
	}
	return k.time(l.value)
}

// ErrNoTime: a record does not have any of the keys that should hold its time.
var ErrNoTime = errors.New("no time found")

// oneOf lists names for a message.
func oneOf(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = strconv.Quote(name)
	}
	return strings.Join(quoted, " or ")
}

// time reads the time that a value is.
func (k *Keys) time(v jsonwalk.Raw) (t time.Time, err error) {
	switch number := v[0] == '-' || v[0] >= '0' && v[0] <= '9'; {
	case k.ParseTime != nil:
		t, err = k.ParseTime(v.Text())
	case number:
		t, err = schemas.ParseJSONTime(string(v))
	default:
		t, err = schemas.ParseTime(v.Text())
	}
	if err != nil {
		return time.Time{}, err
	}
	// The year 1, some languages' unset time, must not pass for "now".
	_, err = schemas.UnixNs(t)
	return t.UTC(), err
}

// notJSON says where a text stops being JSON.
func notJSON(line string) error {
	var raw json.RawMessage
	err := json.Unmarshal([]byte(line), &raw)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("%w: %s at byte %d of %d", schemas.ErrNotJSON, syntax.Error(), syntax.Offset, len(line))
	}
	return fmt.Errorf("%w: %w", schemas.ErrNotJSON, err)
}

// notObject says what JSON is that begins so, and is not an object.
func notObject(first byte) error {
	noun := "a number"
	switch first {
	case '[':
		noun = "an array"
	case '"':
		noun = "a string"
	case 't', 'f':
		noun = "a truth value"
	case 'n':
		noun = "null"
	}
	return fmt.Errorf("%w: it is %s, it must be an object", schemas.ErrJSONEvent, noun)
}
