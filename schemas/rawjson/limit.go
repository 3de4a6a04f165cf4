package rawjson

import (
	"slices"
	"strconv"

	"github.com/almanac-events/almanac/schemas"
)

// attrs makes attributes of leaves, at most MaxAttrs. It gives names that come twice a
// number.
func (k *Keys) attrs(leaves []leaf) []schemas.Attr {
	if len(leaves) == 0 {
		return nil
	}
	if anyTwice(leaves) {
		number(leaves)
	}
	good := 0
	for i := range leaves {
		if fits(&leaves[i]) {
			good++
		}
	}
	attrs := make([]schemas.Attr, 0, min(len(leaves), schemas.MaxAttrs))
	if good == len(leaves) && good <= schemas.MaxAttrs {
		for i := range leaves {
			attrs = append(attrs, schemas.JSONAttr(leaves[i].text, string(leaves[i].value)))
		}
		return attrs
	}
	within := k.within(leaves, good, schemas.MaxAttrs-1)
	var rest []byte
	for i := range leaves {
		if l := &leaves[i]; within(i) {
			attrs = append(attrs, schemas.JSONAttr(l.text, string(l.value)))
		} else {
			rest = append(rest, "{,"[min(len(rest), 1)], '"')
			rest = append(append(rest, l.raw...), '"', ':')
			rest = l.value.Compact(rest)
		}
	}
	name := schemas.AttrRest
	for slices.ContainsFunc(leaves, func(l leaf) bool { return l.text == name }) {
		name += "#"
	}
	return append(attrs, schemas.String(name, string(append(rest, '}'))))
}

// fits reports whether a leaf has a name that an attribute can have.
func fits(l *leaf) bool { return l.text != "" && len(l.text) <= schemas.MaxAttrKeyBytes }

// fewLeaves are so few that comparing each with each costs less than a map of them: measured,
// 0.5 against 1.2 µs at 24 names of one length, the same at 48. Records have fewer.
const fewLeaves = 24

// anyTwice reports whether two leaves have the same name; it may say so of many leaves
// that have not.
func anyTwice(leaves []leaf) bool {
	if len(leaves) > fewLeaves {
		return true
	}
	for i := range leaves {
		for k := range leaves[:i] {
			if leaves[i].text == leaves[k].text {
				return true
			}
		}
	}
	return false
}

// number gives names that come twice a number.
func number(leaves []leaf) {
	uses := make(map[string]int, len(leaves))
	for i := range leaves {
		l := &leaves[i]
		for name, raw := l.text, l.raw; uses[l.text] > 0; {
			uses[name]++
			suffix := "#" + strconv.Itoa(uses[name])
			l.text, l.raw = name+suffix, raw+suffix
		}
		uses[l.text]++
	}
}

// within reports which of the leaves become attributes: of those that fit, the
// topic's first, and then the others in order, up to the limit.
func (k *Keys) within(leaves []leaf, good, limit int) func(i int) bool {
	if good <= limit {
		return func(i int) bool { return fits(&leaves[i]) }
	}
	taken := make([]bool, len(leaves))
	first := k.Topic.TakenFirst()
	for _, turn := range []func(string) bool{first, func(string) bool { return true }} {
		for i := range leaves {
			if l := &leaves[i]; limit > 0 && !taken[i] && fits(l) && turn(l.text) {
				taken[i], limit = true, limit-1
			}
		}
	}
	return func(i int) bool { return taken[i] }
}
