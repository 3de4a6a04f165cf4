package logql

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
)

// selection is what a topic's events are asked for: those that a filter selects, and of them those that the stages left keep.
type selection struct {
	where string
	rest  []Stage
	// none: no event of the topic is part of the answer.
	none bool
}

// selection turns what a filter can say into one. The order of filters does not matter, until a stage changes lines or labels.
func (p *Pipeline) selection(f *topicFields) selection {
	var s selection
	var conds []string
	add := func(text string, one Stage) {
		switch {
		case text == "":
			s.rest = append(s.rest, one)
		case text == never:
			s.none = true
		case text != always:
			conds = append(conds, text)
		}
	}
	for i := range p.Matchers {
		m := &p.Matchers[i]
		add(f.text(m), &LabelFilter{&Text{*m}})
	}
	changed := false
	for _, stage := range p.Stages {
		switch one := stage.(type) {
		case *LineFilter:
			if !changed {
				add(one.where(), one)
				continue
			}
		case *LabelFilter:
			if !changed {
				add(f.cond(one.Cond), one)
				continue
			}
		default:
			changed = true
		}
		s.rest = append(s.rest, stage)
	}
	s.where = strings.Join(conds, " AND ")
	return s
}

// Conditions that are decided without a row; "" is one that no filter can say.
const (
	always = "true"
	never  = "false"
)

func decided(holds bool) string {
	if holds {
		return always
	}
	return never
}

// where is the filter of lines as one of the message.
func (f *LineFilter) where() string {
	var any []string
	for _, text := range f.Texts {
		switch {
		case text == "":
			any = append(any, always)
		case f.Regexp:
			any = append(any, schemas.ColMessage+" matches "+filter.Quote("(?-s:"+text+")"))
		default:
			any = append(any, schemas.ColMessage+" contains "+filter.Quote(text))
		}
	}
	return negated(f.Not, joined(any, " OR ", always, never))
}

// joined joins conditions. One that decides all of them does, and those that decide nothing are left out.
func joined(conds []string, word, decides, neutral string) string {
	var out []string
	for _, c := range conds {
		switch c {
		case "":
			return ""
		case decides:
			return decides
		case neutral:
		default:
			out = append(out, c)
		}
	}
	switch len(out) {
	case 0:
		return neutral
	case 1:
		return out[0]
	}
	return "(" + strings.Join(out, word) + ")"
}

func negated(not bool, cond string) string {
	switch {
	case !not || cond == "":
		return cond
	case cond == always:
		return never
	case cond == never:
		return always
	}
	return "NOT (" + cond + ")"
}

func (f *topicFields) cond(c Cond) string {
	switch c := c.(type) {
	case Any:
		return joined(f.conds(c), " OR ", always, never)
	case All:
		return joined(f.conds(c), " AND ", never, always)
	case *Text:
		return f.text(&c.Matcher)
	case *Compare:
		return f.compare(c)
	}
	return ""
}

func (f *topicFields) conds(all []Cond) (out []string) {
	for _, c := range all {
		out = append(out, f.cond(c))
	}
	return out
}

// text is a comparison of texts as a filter.
func (f *topicFields) text(m *Matcher) string {
	if m.Name == ErrorLabel || m.Name == DetailsLabel {
		return decided(m.Matches("")) // no stage before has failed
	}
	s, one := f.of(m.Name)
	if !one {
		return ""
	}
	switch s.form {
	case formTopic:
		return decided(m.Matches(f.topic.Name))
	case formText, formAttr:
		switch m.Op {
		case Equal, NotEqual:
			return s.name + " " + string(m.Op) + " " + filter.Quote(m.Value)
		case Match, NotMatch:
			if m.re.String() == everyText {
				return decided(m.Op == Match)
			}
			return negated(m.Op == NotMatch, s.name+" matches "+filter.Quote(m.re.String()))
		}
	case formInt:
		if m.Op == Equal || m.Op == NotEqual {
			n, err := strconv.ParseInt(m.Value, 10, 64)
			if err != nil || strconv.FormatInt(n, 10) != m.Value {
				return decided(m.Op == NotEqual)
			}
			return s.name + " " + string(m.Op) + " " + m.Value
		}
	}
	return ""
}

// everyText is the expression that each text fulfils, as anchored writes it.
const everyText = "^(?s:.*)$"

var plainNumber = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?$`)

// compare is a comparison of numbers as a filter.
func (f *topicFields) compare(c *Compare) string {
	s, one := f.of(c.Name)
	if !one || c.Kind != KindNumber || !plainNumber.MatchString(c.Source) {
		return ""
	}
	switch s.form {
	case formAttr: // = and != compare texts there, < and > numbers
		switch c.Op {
		case "=":
			return "(" + s.name + " >= " + c.Source + " AND " + s.name + " <= " + c.Source + ")"
		case "!=":
			return "(" + s.name + " > " + c.Source + " OR " + s.name + " < " + c.Source + ")"
		}
		return s.name + " " + c.Op + " " + c.Source
	case formInt:
		if _, err := strconv.ParseInt(c.Source, 10, 64); err == nil {
			return s.name + " " + c.Op + " " + c.Source
		}
	case formFloat:
		if strings.Contains(c.Source, ".") || math.Abs(c.Value) < 1<<53 { // a filter refuses whole numbers that a float64 does not have
			return s.name + " " + c.Op + " " + c.Source
		}
	}
	return ""
}
