package filter

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// Result is what can be said of an event without ClickHouse.
type Result int8

const (
	// No: the filter surely does not match, and Yes: it surely does. Unsure leaves it
	// to ClickHouse.
	No     Result = -1
	Unsure Result = 0
	Yes    Result = 1
)

func result(b bool) Result {
	if b {
		return Yes
	}
	return No
}

// Evaluator is a filter over the events of an open frame. It says Yes or No only where
// ClickHouse would say the same.
//
// What it leaves to ClickHouse: matches, numbers among the attributes, fractions,
// times before 1970, and an attribute that is there twice.
type Evaluator struct {
	r    *frame.Reader
	root evaluated // nil: every event matches
}

// evaluated is a node for one frame.
type evaluated interface{ of(i int) Result }

// On is the filter for the frame that r holds open, until it opens the next. The frame is not a shard's yet: shard and pos
// are 0, as tables.FreshSource has them.
func (e *Expr) On(r *frame.Reader) Evaluator { return e.OnPlaced(r, 0, 0) }

// OnPlaced is On for a frame at a position of a shard.
func (e *Expr) OnPlaced(r *frame.Reader, shard schemas.Shard, pos uint64) Evaluator {
	if e.All() {
		return Evaluator{}
	}
	return Evaluator{r, evaluatorOf(e.root, &placed{r, uint64(shard), pos})}
}

// Of judges event i.
func (j Evaluator) Of(i int) Result {
	if j.root == nil {
		return Yes
	}
	return j.root.of(i)
}

// placed is an open frame and where it is.
type placed struct {
	*frame.Reader
	shard, pos uint64
}

func evaluatorOf(n node, r *placed) evaluated {
	switch n := n.(type) {
	case logical:
		kids := make([]evaluated, len(n.kids))
		for i, k := range n.kids {
			kids[i] = evaluatorOf(k, r)
		}
		if n.or {
			return anyOf(kids)
		}
		return allOf(kids)
	case negation:
		return notOf{evaluatorOf(n.kid, r)}
	case compare:
		return compareOn(n, r)
	}
	return unsure{}
}

// Of three verdicts, AND is the least, OR the greatest, and NOT the other side of 0.
type (
	allOf  []evaluated
	anyOf  []evaluated
	notOf  struct{ kid evaluated }
	unsure struct{}
	byRow  func(i int) Result
)

func (a allOf) of(i int) Result {
	v := Yes
	for _, k := range a {
		if v = min(v, k.of(i)); v == No {
			break
		}
	}
	return v
}

func (a anyOf) of(i int) Result {
	v := No
	for _, k := range a {
		if v = max(v, k.of(i)); v == Yes {
			break
		}
	}
	return v
}

func (n notOf) of(i int) Result { return -n.kid.of(i) }
func (unsure) of(int) Result    { return Unsure }
func (f byRow) of(i int) Result { return f(i) }

// compareOn is one comparison on an open frame.
func compareOn(n compare, at *placed) evaluated {
	r := at.Reader
	c := r.ColumnIndex(n.field.name)
	if c < 0 && n.field.promoted != nil { // a field that came after the frame's schema version
		return olderOn(n, r)
	}
	bits := func(i int) uint64 { return r.Bits(c, i) }
	switch n.field.typ {
	case typeText:
		return textOn(n, r, c)
	case typeAttr:
		return attributeOn(n, r)
	case typeUUID:
		return ordered(n, parseID, func(i int) string { id := r.ID(i); return string(id[:]) })
	case typeTime:
		return ordered(n, parseTime, func(i int) int64 { return int64(bits(i)) })
	case typeInt:
		return ordered(n, parseInt, func(i int) int64 { return int64(bits(i)) })
	case typeFloat:
		if n.op == opIn || n.op == opNotIn {
			return unsure{} // a set tells -0 from 0
		}
		return ordered(n, parseWhole, func(i int) float64 { return math.Float64frombits(bits(i)) })
	case typeBool:
		return ordered(n, parseBool, func(i int) int64 { return bit(r.Truth(c, i)) })
	case typeMonth:
		return ordered(n, parseUint, func(i int) uint64 { return uint64(schemas.MonthOf(r.Ts(i))) })
	case typeShard:
		return ordered(n, parseUint, func(int) uint64 { return at.shard })
	case typePos:
		return ordered(n, parseUint, func(int) uint64 { return at.pos })
	}
	return unsure{}
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// olderOn is one comparison of a promoted field on a frame that does not have it: of what the
// attributes have under its name.
func olderOn(n compare, r *frame.Reader) evaluated {
	f := n.field.promoted
	switch n.field.typ {
	case typeText:
		holds := textTest(n)
		if holds == nil {
			return unsure{}
		}
		return byRow(func(i int) Result { a, _ := r.Older(f, i); return result(holds([]byte(a.Text()))) })
	case typeTime:
		return ordered(n, parseTime, func(i int) int64 { a, _ := r.Older(f, i); ns, _ := a.AsTime(); return ns })
	case typeInt:
		return ordered(n, parseInt, func(i int) int64 { a, _ := r.Older(f, i); v, _ := a.AsInt64(); return v })
	case typeFloat:
		if n.op == opIn || n.op == opNotIn {
			return unsure{} // as above
		}
		return ordered(n, parseWhole, func(i int) float64 { a, _ := r.Older(f, i); v, _ := a.AsFloat64(); return v })
	case typeBool:
		return ordered(n, parseBool, func(i int) int64 { a, _ := r.Older(f, i); v, _ := a.AsBool(); return bit(v) })
	}
	return unsure{}
}

func parseID(s string) (string, bool) {
	id, err := schemas.ParseID(s)
	return string(id[:]), err == nil
}

func parseTime(s string) (int64, bool) {
	at, err := time.Parse(clickhouseTime, s)
	return at.UnixNano(), err == nil && at.Unix() >= 0
}

func parseInt(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

func parseUint(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 64)
	return n, err == nil
}

func parseBool(s string) (int64, bool) {
	if s == "true" {
		return 1, true
	}
	return 0, s == "false"
}

// wholeBelow bounds the numbers that any reader of decimals reads alike: they are
// written as digits alone (see toFloat).
const wholeBelow = 100_000

func parseWhole(s string) (float64, bool) {
	n, err := strconv.ParseFloat(s, 64)
	return n, err == nil && n == math.Trunc(n) && math.Abs(n) < wholeBelow
}

// ordered compares what parse makes of the values with what each event has.
func ordered[T cmp.Ordered](n compare, parse func(string) (T, bool), of func(i int) T) evaluated {
	want := make([]T, len(n.values))
	for k, v := range n.values {
		var ok bool
		if want[k], ok = parse(v.param); !ok {
			return unsure{}
		}
	}
	if n.op == opIn || n.op == opNotIn {
		in := result(n.op == opIn)
		return byRow(func(i int) Result {
			if slices.Contains(want, of(i)) {
				return in
			}
			return -in
		})
	}
	holds, ok := operators[T](n.op)
	if !ok || len(want) != 1 {
		return unsure{}
	}
	return byRow(func(i int) Result { return result(holds(of(i), want[0])) })
}

func operators[T cmp.Ordered](o op) (holds func(a, b T) bool, ok bool) {
	switch o {
	case opEq:
		return func(a, b T) bool { return a == b }, true
	case opNe:
		return func(a, b T) bool { return a != b }, true
	case opLt:
		return func(a, b T) bool { return a < b }, true
	case opLe:
		return func(a, b T) bool { return a <= b }, true
	case opGt:
		return func(a, b T) bool { return a > b }, true
	case opGe:
		return func(a, b T) bool { return a >= b }, true
	}
	return nil, false
}

// textOn compares a column of text, byte by byte.
func textOn(n compare, r *frame.Reader, c int) evaluated {
	holds := textTest(n)
	if holds == nil {
		return unsure{}
	}
	return byRow(func(i int) Result { return result(holds(r.Text(c, i))) })
}

// attributeOn compares an attribute: the empty text where an event lacks it.
func attributeOn(n compare, r *frame.Reader) evaluated {
	if n.op == opExists {
		return byRow(func(i int) Result { _, found := r.Attribute(i, n.field.key); return result(found > 0) })
	}
	holds := textTest(n)
	if holds == nil || n.numeric(n.values[0]) {
		return unsure{}
	}
	return byRow(func(i int) Result {
		v, found := r.Attribute(i, n.field.key)
		if found > 1 {
			return Unsure
		}
		return result(holds(v))
	})
}

// textTest is a comparison of texts; nil where only ClickHouse can.
func textTest(n compare) func(v []byte) bool {
	want := make([][]byte, len(n.values))
	for i, v := range n.values {
		want[i] = []byte(v.param)
	}
	switch n.op {
	case opExists:
		return func(v []byte) bool { return len(v) > 0 }
	case opContains:
		return func(v []byte) bool { return bytes.Contains(v, want[0]) }
	case opMatches:
		return nil
	case opIn, opNotIn:
		listed := make(map[string]bool, len(want))
		for _, w := range want {
			listed[string(w)] = true
		}
		return func(v []byte) bool { return listed[string(v)] == (n.op == opIn) }
	case opEq:
		return func(v []byte) bool { return bytes.Equal(v, want[0]) }
	case opNe:
		return func(v []byte) bool { return !bytes.Equal(v, want[0]) }
	}
	holds, ok := operators[int](n.op)
	if !ok {
		return nil
	}
	return func(v []byte) bool { return holds(bytes.Compare(v, want[0]), 0) }
}
