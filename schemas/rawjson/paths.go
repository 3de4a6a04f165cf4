package rawjson

import (
	"fmt"
	"slices"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/internal/jsonwalk"
)

// Paths says under which names the records of a protocol carry the fields of
// an event. Build it with NewPaths. It does not change afterwards.
type Paths struct{ places map[string]fieldPlace }

// fieldPlace is the field that a path may fill; the path of the lowest rank does.
type fieldPlace struct{ field, rank int }

var fieldsByColumn = map[string]int{
	schemas.ColTs: fieldTime, schemas.ColLevel: fieldLevel, schemas.ColService: fieldService, schemas.ColType: fieldType,
	schemas.ColUserID: fieldUserID, schemas.ColTraceID: fieldTraceID, schemas.ColSpanID: fieldSpanID, schemas.ColMessage: fieldMessage,
}

// NewPaths takes, for each column, the paths that may fill it, the preferred
// one first. Columns are ts, level, service, type, user_id, trace_id, span_id and
// message. A level is stored as Level has it; the text that it changes stays as the
// attribute AttrLevelText.
func NewPaths(paths map[string][]string) *Paths {
	p := &Paths{places: map[string]fieldPlace{}}
	for column, names := range paths {
		for rank, name := range names {
			p.places[name] = fieldPlace{fieldsByColumn[column], rank}
		}
	}
	return p
}

// otherName is a leaf that could have filled a field, under a name that the field's rules cover.
func (k *Keys) otherName(l leaf) leaf {
	at, other := k.Paths.places[l.text]
	if !other || at.field == fieldTime {
		return l
	}
	if name := k.Topic.OtherName(columnOf(at.field), l.text); name != l.text {
		raw := jsonwalk.Quote(name)
		l.text, l.raw = name, raw[1:len(raw)-1]
	}
	return l
}

// columnOf is the column of a field of an event.
func columnOf(field int) string {
	for column, f := range fieldsByColumn {
		if f == field {
			return column
		}
	}
	return ""
}

// FromRecord makes an event of named texts and of the members of JSON objects, in
// that order. With Paths, a path fills its field and does not stay an attribute;
// nothing fills the event's id. What two objects say alike is kept once. The error
// is ErrNotJSON with the byte offset, or ErrJSONEvent with the key.
//
// The event's texts share the memory of the objects: give the same object of several
// records as the same text, or each of their events holds a copy of it.
func (k Keys) FromRecord(pairs []Pair, objects ...string) (schemas.Event, error) {
	kept := takeLeaves()
	w := flattener{leaves: appendPairs(*kept, pairs)}
	defer func() { giveLeaves(kept, w.leaves) }()
	for _, object := range objects {
		w.text = object
		if err := w.document(); err != nil {
			return schemas.Event{}, err
		}
	}
	leaves := w.leaves
	if len(objects) > 1 {
		leaves = distinct(leaves)
	}
	ev, err := k.event(leaves)
	if err != nil {
		return schemas.Event{}, fmt.Errorf("%w: %w", schemas.ErrJSONEvent, err)
	}
	return ev, nil
}

// distinct leaves out what repeats an earlier name with the same value.
func distinct(leaves []leaf) []leaf {
	seen := make(map[string]jsonwalk.Raw, len(leaves))
	return slices.DeleteFunc(leaves, func(l leaf) bool {
		before, again := seen[l.raw]
		if !again {
			seen[l.raw] = l.value
		}
		return again && before == l.value
	})
}

// Text returns the text of a valid JSON string, or the JSON text of any other
// value. It keeps bytes that are not UTF-8, and lone surrogates, as Parse does.
func Text(value []byte) string { return jsonwalk.Raw(value).Text() }

// byPaths fills an event by k.Paths. It changes the leaves.
func (k *Keys) byPaths(leaves []leaf) (schemas.Event, error) {
	var (
		ev    schemas.Event
		best  [fieldCount]int // 1 + the index of the leaf that fills the field
		rank  [fieldCount]int
		times []int
	)
	for i := range leaves {
		l := &leaves[i]
		l.text = jsonwalk.Unquote(l.raw)
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
		return leaves[best[field]-1].value.Text()
	}
	ev.Level, ev.Service, ev.Type = text(fieldLevel), text(fieldService), text(fieldType)
	ev.UserID, ev.TraceID, ev.SpanID = text(fieldUserID), text(fieldTraceID), text(fieldSpanID)
	ev.Message = text(fieldMessage)
	rest := leaves[:0]
	for i := range leaves {
		l := leaves[i]
		if l.text == "" || !slices.Contains(best[:], i+1) {
			rest = append(rest, k.otherName(l))
			continue
		}
		if i+1 != best[fieldLevel] {
			continue
		}
		if word := Level(ev.Level); word != ev.Level {
			ev.Level, l.text, l.raw = word, schemas.AttrLevelText, schemas.AttrLevelText
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
func (k *Keys) timeOf(ev *schemas.Event, leaves []leaf, times []int) (int, error) {
	place := func(i int) int { return k.Paths.places[leaves[i].text].rank }
	slices.SortStableFunc(times, func(a, b int) int { return place(a) - place(b) })
	for _, i := range times {
		t, err := k.time(leaves[i].value)
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
func (p *Paths) Without(column string) *Paths {
	fewer := &Paths{places: map[string]fieldPlace{}}
	for name, at := range p.places {
		if at.field != fieldsByColumn[column] {
			fewer.places[name] = at
		}
	}
	return fewer
}
