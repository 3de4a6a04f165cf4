package schemas

import (
	"slices"
	"strconv"
)

// attrs makes attributes of leaves, at most MaxAttrs.
func (k *EventKeys) attrs(leaves []jsonLeaf) []Attr {
	if len(leaves) == 0 {
		return nil
	}
	uses := make(map[string]int, len(leaves))
	fits := func(l *jsonLeaf) bool { return l.text != "" && len(l.text) <= MaxAttrKeyBytes }
	good := 0
	for i := range leaves {
		l := &leaves[i]
		for name, raw := l.text, string(l.raw); uses[l.text] > 0; {
			uses[name]++
			suffix := "#" + strconv.Itoa(uses[name])
			l.text, l.raw = name+suffix, []byte(raw+suffix)
		}
		uses[l.text]++
		if fits(l) {
			good++
		}
	}
	limit := MaxAttrs
	if good > MaxAttrs || good < len(leaves) {
		limit = MaxAttrs - 1
	}
	within := k.within(leaves, fits, good, limit)
	attrs := make([]Attr, 0, min(len(leaves), MaxAttrs))
	var rest []byte
	for i := range leaves {
		if l := &leaves[i]; within(i) {
			attrs = append(attrs, l.value.attr(l.text))
		} else {
			rest = append(rest, "{,"[min(len(rest), 1)], '"')
			rest = append(append(rest, l.raw...), '"', ':')
			rest = l.value.compact(rest)
		}
	}
	if rest != nil {
		name := AttrRest
		for uses[name] > 0 {
			name += "#"
		}
		attrs = append(attrs, String(name, string(append(rest, '}'))))
	}
	return attrs
}

// within reports which of the leaves become attributes: of those that fit, the
// topic's first, and then the others in order, up to the limit.
func (k *EventKeys) within(leaves []jsonLeaf, fits func(*jsonLeaf) bool, good, limit int) func(i int) bool {
	if good <= limit {
		return func(i int) bool { return fits(&leaves[i]) }
	}
	taken := make([]bool, len(leaves))
	first := k.Topic.first()
	for _, turn := range []func(string) bool{first, func(string) bool { return true }} {
		for i := range leaves {
			if l := &leaves[i]; limit > 0 && !taken[i] && fits(l) && turn(l.text) {
				taken[i], limit = true, limit-1
			}
		}
	}
	return func(i int) bool { return taken[i] }
}

// first reports which names are taken before the limit on attributes counts.
func (t *Topic) first() func(name string) bool {
	if t == nil || len(t.Fields)+len(t.PII)+len(t.Anonymise.Fields) == 0 {
		return func(string) bool { return false }
	}
	rules := slices.Clone(t.rules())
	for _, f := range t.Anonymise.Fields {
		rules = append(rules, Private{Field: f})
	}
	names := namesUnder(rules)
	promoted := map[string]bool{}
	for _, f := range t.Fields {
		promoted[f.Name] = true
		promoted[f.From] = true // a leaf without a name never fits
	}
	return func(name string) bool {
		_, ruled := names.rule(name)
		return ruled || promoted[name] || names.below(name)
	}
}
