package rawjson

import (
	"sync"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/internal/jsonwalk"
)

// leaf is one value of the flattened object. Its texts share the object's memory where
// they are in it.
type leaf struct {
	raw   string // the name as written, escapes and all
	text  string // the name
	value jsonwalk.Raw
	top   bool // a key of the object itself, not of a nested one
}

// leafPool keeps the leaves of records from one record to the next.
var leafPool = sync.Pool{New: func() any { return new([]leaf) }}

// keptLeaves bounds what leafPool keeps of one record: some 60 KiB.
const keptLeaves = 1024

func takeLeaves() *[]leaf { return leafPool.Get().(*[]leaf) }

// giveLeaves gives back what takeLeaves returned. used is what became of it.
func giveLeaves(l *[]leaf, used []leaf) {
	if cap(used) > keptLeaves {
		return
	}
	clear(used) // or they would hold the record's memory
	*l = used[:0]
	leafPool.Put(l)
}

// flattener checks JSON and cuts it into leaves, in one pass.
type flattener struct {
	text   string
	at     int
	leaves []leaf
	whole  *schemas.Topic // whose fields of type json keep their objects
}

// document flattens the one object that the text is.
func (w *flattener) document() error {
	w.at = jsonwalk.Space(w.text, 0)
	first := jsonwalk.At(w.text, w.at)
	if first == '{' && w.object("", 1) && jsonwalk.Space(w.text, w.at) == len(w.text) {
		return nil
	}
	if first == '{' || !jsonwalk.Valid(w.text) {
		return notJSON(w.text)
	}
	return notObject(first)
}

// object walks the object at w.at, whose members' names begin with prefix. False: it is
// not JSON.
func (w *flattener) object(prefix string, depth int) bool {
	if w.at = jsonwalk.Space(w.text, w.at+1); jsonwalk.At(w.text, w.at) == '}' {
		w.at++
		return true
	}
	for {
		quote, value := jsonwalk.PassName(w.text, w.at)
		if value < 0 {
			return false
		}
		key := w.text[w.at+1 : quote]
		if w.at = value; !w.member(prefix, key, depth) {
			return false
		}
		w.at = jsonwalk.Space(w.text, w.at)
		switch jsonwalk.At(w.text, w.at) {
		case ',':
			w.at = jsonwalk.Space(w.text, w.at+1)
		case '}':
			w.at++
			return true
		default:
			return false
		}
	}
}

// maxPrefixBytes bounds the name that each member of an object repeats. No attribute
// has a name half as long, and an object of 400 KiB could otherwise become one
// event of 800 MB.
const maxPrefixBytes = 2 * schemas.MaxAttrKeyBytes

// member makes leaves of a member of an object, whose value begins at w.at: one, or those of an object's own members;
// none of a null. It is false where the text is not JSON.
func (w *flattener) member(prefix, key string, depth int) bool {
	start := w.at
	first := jsonwalk.At(w.text, start)
	if first == '{' && w.opens(prefix, key, depth) {
		if depth == 1 && key == schemas.ColAttributes {
			return w.object("", depth+1)
		}
		return w.object(prefix+key+".", depth+1)
	}
	if w.at = jsonwalk.Pass(w.text, start, depth); w.at < 0 {
		return false
	}
	if first == 'n' {
		return true
	}
	raw := key
	if prefix != "" { // joining an empty one takes as long
		raw = prefix + key
	}
	w.leaves = append(w.leaves, leaf{raw: raw, value: jsonwalk.Raw(w.text[start:w.at]), top: depth == 1})
	return true
}

// opens reports whether the members of the object at w.at become leaves of their own.
func (w *flattener) opens(prefix, key string, depth int) bool {
	message := depth == 1 && schemas.JSONWords[key] == schemas.ColMessage
	short := len(prefix)+len(key) <= maxPrefixBytes
	empty := jsonwalk.At(w.text, jsonwalk.Space(w.text, w.at+1)) == '}'
	if depth == 1 && key == schemas.ColAttributes {
		empty = false // it holds attributes, and here none
	}
	return depth < schemas.MaxJSONFlatten && short && !message && !empty && !keeps(w.whole, prefix+key)
}

// keeps reports whether an object under that name stays whole: that of a field of type
// json. A nil topic does not have one.
func keeps(t *schemas.Topic, name string) bool {
	if t == nil {
		return false
	}
	for i := range t.Fields {
		if f := &t.Fields[i]; f.Type == schemas.TypeJSON && f.Takes(name) {
			return true
		}
	}
	return false
}
