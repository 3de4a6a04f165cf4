package schemas

import (
	"encoding/json"
	"strings"
)

// isJSONText reports whether a text may be a JSON object or array.
func isJSONText(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return s != "" && (s[0] == '{' || s[0] == '[')
}

// cleanText applies the rules inside a text of that name, when it is a JSON object
// or array; any other text stays as it is.
func (r *Privacy) cleanText(name, text string) string {
	if !isJSONText(text) || !r.names.below(name) || !json.Valid([]byte(text)) {
		return text
	}
	return string(r.cleanJSON(onceName(name), []byte(text)))
}

// Clean returns a JSON object with the rules applied wherever a name is covered:
// what ParseJSONEvent and Apply would remove is not in it, and all else is as it
// was. False when the text is not a JSON object, and so nothing can be told of it.
func (r *Privacy) Clean(text []byte) ([]byte, bool) {
	if !json.Valid(text) {
		return nil, false
	}
	w := jsonWalk{b: text}
	if w.space(); w.b[w.i] != '{' {
		return nil, false
	}
	return r.cleanJSON("", text), true
}

// cleanJSON applies the rules to valid JSON that has a name.
func (r *Privacy) cleanJSON(name string, text []byte) []byte {
	c := jsonCleaner{r: r, jsonWalk: jsonWalk{b: text}}
	c.space()
	c.value(name)
	return c.out
}

// jsonCleaner copies JSON and leaves out what rules cover. Elements of an array
// have the array's name.
type jsonCleaner struct {
	jsonWalk
	r     *Privacy
	out   []byte
	depth int // of objects that a rule covers
}

// value copies the value at c.i. It descends only where a rule lies below, or into
// an object that one covers, which bounds its depth.
func (c *jsonCleaner) value(path string) {
	start := c.i
	below := c.depth > 0 || c.r.names.below(path)
	switch {
	case below && c.b[start] == '{':
		c.members(path, '}')
	case below && c.b[start] == '[':
		c.members(path, ']')
	default:
		v := jsonValue(c.b[start:c.skip()])
		if below && v[0] == '"' {
			if text := v.text(); isJSONText(text) {
				c.out = append(c.out, quoteJSON(c.r.cleanText(path, text))...)
				return
			}
		}
		c.out = append(c.out, v...)
	}
}

// members copies an object or an array up to its closing byte.
func (c *jsonCleaner) members(path string, closing byte) {
	c.out = append(c.out, c.b[c.i])
	empty := len(c.out)
	for c.i++; ; c.i++ { // over the opening byte at first, over ',' afterwards
		if c.space(); c.b[c.i] == closing {
			break
		}
		before := len(c.out)
		if before > empty {
			c.out = append(c.out, ',')
		}
		if !c.member(path, closing == '}') {
			c.out = c.out[:before]
		}
		if c.space(); c.b[c.i] == closing {
			break
		}
	}
	c.out = append(c.out, closing)
	c.i++
}

// member copies one member; false when nothing of it may stay.
func (c *jsonCleaner) member(path string, named bool) bool {
	if !named {
		c.value(path)
		return true
	}
	start := c.i
	key := c.b[start:c.skip()]
	c.space()
	c.i++ // the colon
	c.space()
	name := unquoteJSON(key[1 : len(key)-1])
	if path != "" {
		name = path + "." + name
	}
	c.out = append(append(c.out, key...), ':')
	name = plainName(name)
	p, ruled := c.r.names.rule(name)
	if !ruled {
		c.value(name)
		return true
	}
	if c.b[c.i] == '{' && c.depth < MaxJSONFlatten && !c.emptyObject() { // as ParseJSONEvent: each member by itself
		c.depth++
		c.value(name)
		c.depth--
		return true
	}
	v := jsonValue(c.b[c.i:c.skip()])
	if v[0] == 'n' {
		c.out = append(c.out, v...)
		return true
	}
	a, ok := c.r.attr(p, v.attr(""))
	if !ok {
		return false
	}
	if a.kind == KindString {
		c.out = append(c.out, quoteJSON(a.str)...)
	} else {
		c.out = a.AppendText(c.out)
	}
	return true
}
