package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/operations"
)

// arguments are what a call gives, each as the texts that a query would have.
type arguments map[string][]string

// argumentsOf reads the arguments of a call. A number or a switch may stand as itself or as text, and a list for names
// with commas between.
func (t *tool) argumentsOf(raw json.RawMessage) (arguments, error) {
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, fmt.Errorf("the arguments are not a JSON object: %w", err)
		}
	}
	out := arguments{}
	var known []string
	for i := range t.params {
		p := &t.params[i]
		known = append(known, p.Name)
		value, ok := given[p.Name]
		if ok {
			texts, err := textsOf(value)
			if err != nil {
				return nil, fmt.Errorf("argument %s is %w", p.Name, err)
			}
			if p.Kind == operations.Names && len(texts) > 1 {
				texts = []string{strings.Join(texts, ",")}
			}
			if texts = slices.DeleteFunc(texts, func(s string) bool { return s == "" && !p.Empty }); len(texts) > 0 {
				out[p.Name] = texts
			}
		}
		if p.Required && len(out[p.Name]) == 0 {
			return nil, fmt.Errorf("argument %s is missing: %s", p.Name, p.Description())
		}
	}
	for name := range given {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("argument %q is not known: %s takes %s", name, t.op.Tool, strings.Join(known, ", "))
		}
	}
	return out, nil
}

// textsOf is a JSON value as the texts of a parameter.
func textsOf(raw json.RawMessage) ([]string, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	all, ok := v.([]any)
	if !ok {
		all = []any{v}
	}
	var out []string
	for _, one := range all {
		switch x := one.(type) {
		case nil:
		case string:
			out = append(out, x)
		case json.Number:
			out = append(out, x.String())
		case bool:
			out = append(out, fmt.Sprint(x))
		default:
			return nil, errors.New("an object or a list of lists; it must be a text, a number, true or false, or a list of those")
		}
	}
	return out, nil
}

// request is what a call asks of the API below base.
func (t *tool) request(base string, args arguments) (*http.Request, error) {
	var path []string
	for part := range strings.SplitSeq(t.op.Path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			name = strings.TrimSuffix(name, "}")
			if len(args[name]) != 1 {
				return nil, fmt.Errorf("argument %s must be one value", name)
			}
			if part = args[name][0]; part == "." || part == ".." {
				return nil, fmt.Errorf("argument %s is %q, which names nothing", name, part)
			}
			part = url.PathEscape(part)
		}
		path = append(path, part)
	}
	query := url.Values{}
	for i := range t.params {
		if p := &t.params[i]; p.In == operations.Query && p.Name != bodyArgument && len(args[p.Name]) > 0 {
			query[p.Name] = args[p.Name]
		}
	}
	var body io.Reader
	if t.op.Body != nil {
		body = strings.NewReader(strings.Join(args[bodyArgument], "\n"))
	}
	address := base + strings.Join(path, "/")
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequest(t.op.Method, address, body) //nolint:noctx // the endpoint gives it the context of the call
	if err == nil && body != nil {
		r.Header.Set("Content-Type", "text/plain")
	}
	return r, err
}
