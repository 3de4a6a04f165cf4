package mcp

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/almanac-events/almanac/internal/operations"
)

// bodyArgument is the argument that becomes the body of a request.
const bodyArgument = "statement"

// promQL is asked of Prometheus' API, whose routes are as that program has them.
var promQL = operations.Operation{
	Tool: "promql", Method: http.MethodGet, Path: "/t/{topic}/api/v1/query_range",
	Summary: "A PromQL expression over a topic of kind metric, evaluated at each step of a range",
	Params: []operations.Param{
		{Name: "topic", In: operations.Path, Required: true, Help: "the `TOPIC`"},
		{Name: "query", Required: true, Help: "the `EXPRESSION`, such as sum by (host) (rate(requests_total[5m]))"},
		{Name: "start", Required: true, Help: "`TIME` of the first step, as RFC 3339 or seconds since 1970"},
		{Name: "end", Required: true, Help: "`TIME` of the last step"},
		{Name: "step", Required: true, Help: "`LENGTH` between steps, such as 1m"},
	},
}

// tool is an operation as assistants have it.
type tool struct {
	op *operations.Operation
	// params are those that a call may have, the one that becomes the body among them.
	params []operations.Param
}

// tools are what there is, by name.
var tools = func() map[string]*tool {
	all := map[string]*tool{}
	for _, op := range append(slices.Clone(operations.All), &promQL) {
		if op.Tool == "" {
			continue
		}
		t := &tool{op: op}
		for i := range op.Params {
			if op.Params[i].In != operations.Header {
				t.params = append(t.params, op.Params[i])
			}
		}
		if op.Body != nil {
			t.params = append(t.params, operations.Param{Name: bodyArgument, Required: true, Help: "the `TEXT` of the statement"})
		}
		all[op.Tool] = t
	}
	return all
}()

// Names lists the tools.
func Names() []string {
	var names []string
	for name := range tools {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// described is a tool as a client is told of it.
func (t *tool) described() *sdk.Tool {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	for i := range t.params {
		p := &t.params[i]
		s.Properties[p.Name] = schema(p)
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	text := t.op.Summary
	if t.op.Description != "" {
		text += ". " + t.op.Description
	}
	closed := false
	return &sdk.Tool{
		Name: t.op.Tool, Title: t.op.Summary, Description: text, InputSchema: s,
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, DestructiveHint: &closed, OpenWorldHint: &closed},
	}
}

// schema is the type of an argument.
func schema(p *operations.Param) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string", Description: p.Description()}
	switch p.Kind {
	case operations.Number:
		s.Type = "integer"
		if p.Most > p.Least {
			least, most := float64(p.Least), float64(p.Most)
			s.Minimum, s.Maximum = &least, &most
		}
	case operations.Switch:
		s.Type = "boolean"
	case operations.Texts:
		s.Type, s.Items = "array", &jsonschema.Schema{Type: "string"}
	case operations.Word:
		s.Enum = words(p.Words)
	case operations.Text:
		s.Enum = words(p.Words)
	case operations.Time, operations.End:
		s.Description += ": RFC 3339, a date, now, or a distance back such as -15m"
	case operations.Token, operations.Span, operations.Wait, operations.Names, operations.Signed, operations.Amount, operations.Fraction, operations.Numbers, operations.Length:
	}
	if p.Default != "" {
		s.Description += "; " + p.Default + " unless told"
	}
	if p.MaxBytes > 0 {
		s.MaxLength = &p.MaxBytes
	}
	return s
}

func words(all []string) []any {
	var out []any
	for _, w := range all {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

// limit is the parameter by which a page is made smaller; nil for none.
func (t *tool) limit() *operations.Param {
	for i := range t.params {
		if p := &t.params[i]; p.Name == "limit" && p.Kind == operations.Number {
			return p
		}
	}
	return nil
}

// narrowing names what makes the answer of a tool smaller.
func (t *tool) narrowing() string {
	var names []string
	for i := range t.params {
		if p := &t.params[i]; p.In == operations.Query && slices.Contains([]string{"limit", "from", "to", "start", "step", "where", "fields", "by", "n", "month", "topic", "metric", bodyArgument}, p.Name) {
			names = append(names, p.Name)
		}
	}
	return cmp.Or(strings.Join(names, ", "), "another tool")
}
