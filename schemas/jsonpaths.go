package schemas

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// FieldPaths says under which names the records of a protocol carry the fields of
// an event. Build it with NewFieldPaths. It does not change afterwards.
type FieldPaths struct {
	places map[string]fieldPlace
	level  func(text string) string
}

// fieldPlace is the field that a path may fill; the path of the lowest rank does.
type fieldPlace struct{ field, rank int }

var fieldsByColumn = map[string]int{
	ColTs: fieldTime, ColLevel: fieldLevel, ColService: fieldService, ColType: fieldType,
	ColUserID: fieldUserID, ColTraceID: fieldTraceID, ColSpanID: fieldSpanID, ColMessage: fieldMessage,
}

// NewFieldPaths takes, for each column, the paths that may fill it, the preferred
// one first. Columns are ts, level, service, type, user_id, trace_id, span_id and
// message. level, when not nil, turns the text of a level into the word to store.
// A text that it changes stays as the attribute AttrLevelText.
func NewFieldPaths(paths map[string][]string, level func(text string) string) *FieldPaths {
	p := &FieldPaths{places: map[string]fieldPlace{}, level: level}
	for column, names := range paths {
		for rank, name := range names {
			p.places[name] = fieldPlace{fieldsByColumn[column], rank}
		}
	}
	return p
}

// AttrLevelText keeps the level as it was sent where the stored word differs.
const AttrLevelText = "level_text"

// FromRecord makes an event of named texts and of the members of JSON objects, in
// that order. With Paths, a path fills its field and does not stay an attribute;
// nothing fills the event's id. What two objects say alike is kept once. The error
// is ErrNotJSON with the byte offset, or ErrJSONEvent with the key.
func (k EventKeys) FromRecord(pairs []Pair, objects ...[]byte) (Event, error) {
	leaves := pairLeaves(pairs)
	for _, object := range objects {
		if !json.Valid(object) {
			return Event{}, notJSON(object)
		}
		w := jsonWalk{b: object, leaves: leaves}
		w.space()
		if object[w.i] != '{' {
			return Event{}, fmt.Errorf("%w: it is %s, it must be an object", ErrJSONEvent, jsonNoun(object[w.i]))
		}
		w.object("", 1)
		leaves = w.leaves
	}
	if len(objects) > 1 {
		leaves = distinct(leaves)
	}
	ev, err := k.event(leaves)
	if err != nil {
		return Event{}, fmt.Errorf("%w: %w", ErrJSONEvent, err)
	}
	return ev, nil
}

// distinct leaves out what repeats an earlier name with the same value.
func distinct(leaves []jsonLeaf) []jsonLeaf {
	seen := make(map[string]jsonValue, len(leaves))
	return slices.DeleteFunc(leaves, func(l jsonLeaf) bool {
		before, again := seen[string(l.raw)]
		if !again {
			seen[string(l.raw)] = l.value
		}
		return again && bytes.Equal(before, l.value)
	})
}

// JSONText returns the text of a valid JSON string, or the JSON text of any other
// value. It keeps bytes that are not UTF-8, and lone surrogates, as ParseJSONEvent does.
func JSONText(value []byte) string { return jsonValue(value).text() }

// byPaths fills an event by k.Paths.
func (k *EventKeys) byPaths(leaves []jsonLeaf) (Event, error) {
	var (
		ev    Event
		best  [fieldCount]int // 1 + the index of the leaf that fills the field
		rank  [fieldCount]int
		times []int
	)
	for i := range leaves {
		l := &leaves[i]
		l.text = unquoteJSON(l.raw)
		at, ok := k.Paths.places[l.text]
		switch {
		case !ok:
		case at.field == fieldTime:
			times = append(times, i)
		case best[at.field] == 0 || at.rank < rank[at.field]:
			best[at.field], rank[at.field] = i+1, at.rank
		}
	}
	var err error
	if best[fieldTime], err = k.timeOf(&ev, leaves, times); err != nil {
		return ev, err
	}
	text := func(field int) string {
		if best[field] == 0 {
			return ""
		}
		return leaves[best[field]-1].value.text()
	}
	ev.Level, ev.Service, ev.Type = text(fieldLevel), text(fieldService), text(fieldType)
	ev.UserID, ev.TraceID, ev.SpanID = text(fieldUserID), text(fieldTraceID), text(fieldSpanID)
	ev.Message = text(fieldMessage)
	rest := make([]jsonLeaf, 0, len(leaves))
	for i, l := range leaves {
		if l.text == "" || !slices.Contains(best[:], i+1) {
			rest = append(rest, l)
			continue
		}
		if i+1 != best[fieldLevel] || k.Paths.level == nil {
			continue
		}
		if word := k.Paths.level(ev.Level); word != ev.Level {
			ev.Level, l.text, l.raw = word, AttrLevelText, []byte(AttrLevelText)
			rest = append(rest, l)
		}
	}
	ev.Attrs = k.attrs(rest)
	return ev, nil
}

// timeOf fills the time from the preferred of the leaves that may hold it, and
// returns 1 + its index. The first path is the protocol's own name for the time,
// so a value there that cannot be read is an error. Others mean something else at
// times: what cannot be read there stays an attribute.
func (k *EventKeys) timeOf(ev *Event, leaves []jsonLeaf, times []int) (int, error) {
	place := func(i int) int { return k.Paths.places[leaves[i].text].rank }
	slices.SortStableFunc(times, func(a, b int) int { return place(a) - place(b) })
	for _, i := range times {
		t, err := (&jsonFields{keys: EventKeys{ParseTime: k.ParseTime}}).time(leaves[i].value)
		if err == nil {
			ev.Time = t
			return i + 1, nil
		}
		if place(i) == 0 {
			return 0, fmt.Errorf("%q: %w", leaves[i].text, err)
		}
	}
	return 0, nil
}

// Without returns the paths without those of a column.
func (p *FieldPaths) Without(column string) *FieldPaths {
	fewer := &FieldPaths{places: map[string]fieldPlace{}, level: p.level}
	for name, at := range p.places {
		if at.field != fieldsByColumn[column] {
			fewer.places[name] = at
		}
	}
	return fewer
}
