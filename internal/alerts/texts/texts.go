package texts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// maxFilled bounds what a template, or one function in it, makes.
const maxFilled = 16 << 10

// errFilled is what Fill says where the bound is passed.
var errFilled = fmt.Errorf("it makes more than %d bytes", maxFilled)

// given declares the variables of an alert, as Prometheus does.
const given = `{{$labels := .Labels}}{{$value := .Value}}`

// of is what a template is filled in with.
type of struct {
	Labels map[string]string
	Value  float64
}

// Text is a text with templates in it.
type Text struct {
	t *template.Template
	// Varies: it has the value of the alert, which differs from one instant to the next.
	Varies bool
}

// New reads a text. It refuses templates that cannot be read, and those that are not built.
func New(text string) (*Text, error) {
	t, err := template.New("").Option("missingkey=zero").Funcs(functions).Parse(given + text)
	if err != nil {
		why := strings.TrimPrefix(err.Error(), "template: :1: ")
		if name := unbuilt(why); name != "" {
			return nil, fmt.Errorf("%s is not built in templates", name)
		}
		return nil, errors.New("the template cannot be read: " + why)
	}
	if len(t.Templates()) > 1 {
		return nil, errors.New("define and block are not built in templates")
	}
	out := &Text{t: t}
	return out, out.walk(t.Root, len(given))
}

// unbuilt is a function of Prometheus's that an error says is not there; empty: it says something else.
func unbuilt(why string) string {
	for _, name := range notBuilt {
		if strings.Contains(why, fmt.Sprintf("function %q not defined", name)) || strings.Contains(why, fmt.Sprintf("undefined variable %q", name)) {
			return name
		}
	}
	return ""
}

// notBuilt are functions and variables that Prometheus's templates have and these do not.
var notBuilt = []string{
	"query", "first", "label", "value", "strvalue", "sortByLabel", "args", "tmpl", "safeHtml", "graphLink", "tableLink", "toTime", "toDuration", "now",
	"pathPrefix", "externalURL", "parseDuration", "urlQueryEscape", "$externalLabels", "$externalURL",
}

// walk refuses what repeats, and finds whether the value is asked for after an offset.
func (t *Text) walk(n parse.Node, after int) error {
	switch n := n.(type) {
	case *parse.RangeNode:
		return errors.New("range is not built in templates")
	case *parse.TemplateNode:
		return errors.New("template is not built in templates")
	case *parse.ListNode:
		if n != nil {
			return t.each(n.Nodes, after)
		}
	case *parse.IfNode:
		return t.branch(&n.BranchNode, after)
	case *parse.WithNode:
		return t.branch(&n.BranchNode, after)
	case *parse.ActionNode:
		return t.walk(n.Pipe, after)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			if err := badPattern(c); err != nil {
				return err
			}
			if err := t.each(c.Args, after); err != nil {
				return err
			}
		}
	case *parse.ChainNode:
		return t.walk(n.Node, after)
	case *parse.DotNode:
		t.Varies = true // of all that it may be, the value is a part
	case *parse.FieldNode:
		t.Varies = t.Varies || int(n.Position()) >= after && slices.Contains(n.Ident, "Value")
	case *parse.VariableNode:
		t.Varies = t.Varies || int(n.Position()) >= after && (n.Ident[0] == "$value" || n.Ident[0] == "$")
	}
	return nil
}

func (t *Text) each(nodes []parse.Node, after int) error {
	for _, n := range nodes {
		if err := t.walk(n, after); err != nil {
			return err
		}
	}
	return nil
}

func (t *Text) branch(n *parse.BranchNode, after int) error {
	for _, part := range []parse.Node{n.Pipe, n.List} {
		if err := t.walk(part, after); err != nil {
			return err
		}
	}
	if n.ElseList == nil {
		return nil
	}
	return t.walk(n.ElseList, after)
}

// Fill returns the text of an alert. Where a template fails the text says so, as Prometheus's does.
func (t *Text) Fill(value float64, labels map[string]string) string {
	var b bounded
	if err := t.t.Execute(&b, of{labels, value}); err != nil {
		return fmt.Sprintf("<error expanding template: %v>", err)
	}
	return b.String()
}

// bounded is a text of maxFilled bytes at most.
type bounded struct{ strings.Builder }

// Write implements io.Writer.
func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxFilled {
		return 0, errFilled
	}
	return b.Builder.Write(p)
}
