package privacy

import (
	"encoding/json"
	"strings"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/internal/jsonwalk"
)

// isJSONText reports whether a text may be a JSON object or array.
func isJSONText(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return s != "" && (s[0] == '{' || s[0] == '[')
}

// cleanText applies the rules inside a text of that name, when it is a JSON object
// or array; any other text stays as it is.
func (r *Rules) cleanText(name, text string) string {
	if !isJSONText(text) || !r.names.Below(name) || !json.Valid([]byte(text)) {
		return text
	}
	return string(r.cleanJSON(schemas.OnceName(name), []byte(text)))
}

// Clean returns a JSON object with the rules applied wherever a name is covered:
// what rawjson.Parse and Apply would remove is not in it, and all else is as it
// was. False when the text is not a JSON object, and so nothing can be told of it.
func (r *Rules) Clean(text []byte) ([]byte, bool) {
	if !json.Valid(text) {
		return nil, false
	}
	w := jsonwalk.Cursor{B: text}
	if w.Space(); w.B[w.I] != '{' {
		return nil, false
	}
	return r.cleanJSON("", text), true
}

// cleanJSON applies the rules to valid JSON that has a name.
func (r *Rules) cleanJSON(name string, text []byte) []byte {
	c := jsonCleaner{r: r, Cursor: jsonwalk.Cursor{B: text}}
	c.Space()
	c.value(name)
	return c.out
}

// jsonCleaner copies JSON and leaves out what rules cover. Elements of an array
// have the array's name.
type jsonCleaner struct {
	jsonwalk.Cursor
	r     *Rules
	out   []byte
	depth int // of objects that a rule covers
}

// value copies the value at c.I. It descends only where a rule lies below, or into
// an object that one covers, which bounds its depth.
func (c *jsonCleaner) value(path string) {
	start := c.I
	below := c.depth > 0 || c.r.names.Below(path)
	switch {
	case below && c.B[start] == '{':
		c.members(path, '}')
	case below && c.B[start] == '[':
		c.members(path, ']')
	default:
		v := c.B[start:c.Skip()]
		if below && v[0] == '"' {
			if text := jsonwalk.Raw(v).Text(); isJSONText(text) {
				c.out = append(c.out, jsonwalk.Quote(c.r.cleanText(path, text))...)
				return
			}
		}
		c.out = append(c.out, v...)
	}
}

// members copies an object or an array up to its closing byte.
func (c *jsonCleaner) members(path string, closing byte) {
	c.out = append(c.out, c.B[c.I])
	empty := len(c.out)
	for c.I++; ; c.I++ { // over the opening byte at first, over ',' afterwards
		if c.Space(); c.B[c.I] == closing {
			break
		}
		before := len(c.out)
		if before > empty {
			c.out = append(c.out, ',')
		}
		if !c.member(path, closing == '}') {
			c.out = c.out[:before]
		}
		if c.Space(); c.B[c.I] == closing {
			break
		}
	}
	c.out = append(c.out, closing)
	c.I++
}

// member copies one member; false when nothing of it may stay.
func (c *jsonCleaner) member(path string, named bool) bool {
	if !named {
		c.value(path)
		return true
	}
	start := c.I
	key := c.B[start:c.Skip()]
	c.Space()
	c.I++ // the colon
	c.Space()
	name := jsonwalk.Unquote(string(key[1 : len(key)-1]))
	if path != "" {
		name = path + "." + name
	}
	c.out = append(append(c.out, key...), ':')
	name = schemas.PlainName(name)
	p, ruled := c.r.names.Rule(name)
	if !ruled {
		c.value(name)
		return true
	}
	if c.B[c.I] == '{' && c.depth < schemas.MaxJSONFlatten && !c.EmptyObject() { // as rawjson.Parse: each member by itself
		c.depth++
		c.value(name)
		c.depth--
		return true
	}
	start = c.I
	v := c.B[start:c.Skip()]
	if v[0] == 'n' {
		c.out = append(c.out, v...)
		return true
	}
	a, ok := c.r.attr(p, name, schemas.JSONAttr("", string(v)))
	if !ok {
		return false
	}
	if a.Kind() == schemas.KindString {
		c.out = append(c.out, jsonwalk.Quote(a.Text())...)
	} else {
		c.out = a.AppendText(c.out)
	}
	return true
}
