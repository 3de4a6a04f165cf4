package logql

import (
	"context"
	"regexp"
	"strings"
)

// Stage is one step of a pipeline.
type Stage interface {
	// apply changes an entry, and reports whether it stays.
	apply(e *Entry) bool
}

// Apply runs an entry through the stages and reports whether it is part of the answer. The entry is changed. Between stages it
// ends with ctx: an expression may take a second over a long line, and there may be a hundred stages.
func (p *Pipeline) Apply(ctx context.Context, e *Entry) (bool, error) {
	for _, s := range p.Stages {
		if err := ctx.Err(); err != nil {
			return false, context.Cause(ctx)
		}
		if !s.apply(e) {
			return false, nil
		}
	}
	return true, nil
}

func pipeline(t *logTerm) (*Pipeline, error) {
	p := &Pipeline{}
	for _, m := range t.Selector.Matchers {
		got, err := matcher(m.Pos, m.Name, m.Op, m.Text)
		if err != nil {
			return nil, err
		}
		p.Matchers = append(p.Matchers, got)
	}
	if len(t.Stages) > MaxStages {
		return nil, refuse(ErrTooLarge, t.Stages[MaxStages].Pos, "%d stages, the limit is %d", len(t.Stages), MaxStages)
	}
	for _, s := range t.Stages {
		if p.Unwrap != nil && (s.Pipe == nil || s.Pipe.Filter == nil) {
			return nil, refuse(ErrSyntax, s.Pos, "behind unwrap only filters of labels stand")
		}
		if s.Line != nil {
			line, err := lineFilter(s)
			if err != nil {
				return nil, err
			}
			p.Stages = append(p.Stages, line)
			continue
		}
		if s.Pipe.Unwrap != nil {
			p.Unwrap = &Unwrap{Label: s.Pipe.Unwrap.Label, conv: s.Pipe.Unwrap.Conv}
			p.Stages = append(p.Stages, p.Unwrap)
			continue
		}
		got, err := pipe(s.Pipe)
		if err != nil {
			return nil, err
		}
		p.Stages = append(p.Stages, got)
	}
	return p, nil
}

func pipe(t *pipeTerm) (Stage, error) {
	switch {
	case t.Parser != nil:
		return parser(t)
	case t.Format != nil:
		return lineFormat(t.Pos, *t.Format)
	case t.Labels != nil:
		return labelFormat(t.Labels)
	case t.Drop != nil:
		return dropping(t, t.Drop, false)
	case t.Keep != nil:
		return dropping(t, t.Keep, true)
	}
	c, err := anyOf(t.Filter)
	return &LabelFilter{c}, err
}

// LineFilter selects lines by their text.
type LineFilter struct {
	// Not: lines stay that have none of the texts. Regexp: the texts are expressions.
	Not, Regexp bool
	Texts       []string
	res         []*regexp.Regexp
}

func (f *LineFilter) apply(e *Entry) bool {
	for i, text := range f.Texts {
		if f.Regexp && f.res[i].MatchString(e.Line) || !f.Regexp && strings.Contains(e.Line, text) {
			return !f.Not
		}
	}
	return f.Not
}

func lineFilter(s *stageTerm) (*LineFilter, error) {
	t := s.Line
	if t.Op == "|>" || t.Op == "!>" {
		return nil, unsupported(s.Pos, "the pattern filter "+t.Op+": write |~ with an expression")
	}
	f := &LineFilter{Not: t.Op[0] == '!', Regexp: t.Op[1] == '~'}
	for _, one := range append([]*lineText{t.First}, t.More...) {
		if one.Func != "" {
			return nil, unsupported(s.Pos, "the function "+one.Func+" in a filter of lines")
		}
		text, err := unquote(one.Text)
		if err != nil {
			return nil, refuse(ErrSyntax, s.Pos, "%s is not a text: an escape in it is not known", one.Text)
		}
		f.Texts = append(f.Texts, text)
		if !f.Regexp {
			continue
		}
		re, err := regexp.Compile(text)
		if err != nil {
			return nil, refuse(ErrSyntax, s.Pos, "%s is not a regular expression: %v", one.Text, err)
		}
		f.res = append(f.res, re)
	}
	return f, nil
}
