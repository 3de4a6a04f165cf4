package openapi

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/internal/operations"
)

// Document is an OpenAPI document.
type Document struct {
	OpenAPI    string                          `yaml:"openapi"`
	Info       Info                            `yaml:"info"`
	Paths      map[string]map[string]operation `yaml:"paths"`
	Components components                      `yaml:"components"`
}

// Info says what the document is of.
type Info struct {
	Title       string `yaml:"title"`
	Version     string `yaml:"version"`
	Description string `yaml:"description"`
}

type components struct {
	Schemas map[string]*Schema `yaml:"schemas"`
}

type operation struct {
	Summary     string              `yaml:"summary"`
	Description string              `yaml:"description,omitempty"`
	Parameters  []parameter         `yaml:"parameters,omitempty"`
	RequestBody *content            `yaml:"requestBody,omitempty"`
	Responses   map[string]response `yaml:"responses"`
}

type parameter struct {
	Name        string  `yaml:"name"`
	In          string  `yaml:"in"`
	Required    bool    `yaml:"required,omitempty"`
	Empty       bool    `yaml:"allowEmptyValue,omitempty"`
	Description string  `yaml:"description,omitempty"`
	Schema      *Schema `yaml:"schema"`
}

type content struct {
	Required bool             `yaml:"required,omitempty"`
	Content  map[string]media `yaml:"content"`
}

type response struct {
	Description string            `yaml:"description"`
	Headers     map[string]header `yaml:"headers,omitempty"`
	Content     map[string]media  `yaml:"content,omitempty"`
}

type header struct {
	Schema *Schema `yaml:"schema"`
}

type media struct {
	Schema *Schema `yaml:"schema"`
}

const asJSON = "application/json"

// Make makes the document. An answer or a body whose type is not known is an error.
func Make(info Info, all []*operations.Operation, types *Types) (*Document, error) {
	d := &Document{OpenAPI: "3.0.3", Info: info, Paths: map[string]map[string]operation{}}
	m, err := newMaker(types)
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if d.Paths[o.Path] == nil {
			d.Paths[o.Path] = map[string]operation{}
		}
		made, err := m.operation(o)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.Method, o.Path, err)
		}
		d.Paths[o.Path][strings.ToLower(o.Method)] = made
	}
	d.Components.Schemas = m.made
	return d, nil
}

func (m *maker) operation(o *operations.Operation) (operation, error) {
	out := operation{Summary: o.Summary, Description: o.Description, Responses: map[string]response{}}
	for i := range o.Params {
		out.Parameters = append(out.Parameters, parameterOf(&o.Params[i]))
	}
	if b := o.Body; b != nil {
		body, err := m.content(b.Type, b.Media)
		if err != nil {
			return out, err
		}
		out.RequestBody = &content{Required: !b.Optional, Content: body}
	}
	for _, a := range o.Answers {
		body, err := m.content(a.Type, a.Media)
		if err != nil {
			return out, err
		}
		if a.Or != "" {
			other, err := m.named(a.Or)
			if err != nil {
				return out, err
			}
			body[asJSON] = media{&Schema{AnyOf: []*Schema{body[asJSON].Schema, other}}}
		}
		r := response{Description: orElse(a.Text, "OK"), Content: body}
		for _, name := range a.Headers {
			if r.Headers == nil {
				r.Headers = map[string]header{}
			}
			r.Headers[name] = header{&Schema{Type: "string"}}
		}
		out.Responses[codeText(a.Code)] = r
	}
	for _, code := range o.Codes() {
		body, err := m.content(orElse(o.Refusal, "Error"), nil)
		if err != nil {
			return out, err
		}
		out.Responses[codeText(code)] = response{Description: http.StatusText(code), Content: body}
	}
	return out, nil
}

// content is what a body may be: JSON of a type, or what the other content types say.
func (m *maker) content(name string, others []string) (map[string]media, error) {
	out := map[string]media{}
	if name != "" {
		s, err := m.named(name)
		if err != nil {
			return nil, err
		}
		out[asJSON] = media{s}
	}
	for _, kind := range others {
		s := &Schema{}
		if strings.HasPrefix(kind, "text/") || kind != asJSON && strings.HasPrefix(kind, "application/") {
			s.Type = "string"
		}
		out[kind] = media{s}
	}
	return out, nil
}

func parameterOf(p *operations.Param) parameter {
	out := parameter{Name: p.Name, In: [...]string{"query", "path", "header"}[p.In], Required: p.Required, Description: p.Description(), Empty: p.Empty || p.Kind == operations.Switch}
	s := &Schema{Type: "string", Enum: given(p.Words), MaxLength: p.MaxBytes, Example: p.Example}
	switch p.Kind {
	case operations.Texts:
		s = &Schema{Type: "array", Items: s}
	case operations.Number:
		s = &Schema{Type: "integer"}
		if p.Most > p.Least {
			s.Minimum, s.Maximum = &p.Least, &p.Most
		}
	case operations.Token:
		one := 1
		s = &Schema{Type: "integer", Minimum: &one}
	case operations.Switch:
		s = &Schema{Type: "boolean"}
	}
	out.Schema = s
	return out
}

// given are the words that can be given: the empty one stands for the parameter's absence.
func given(words []string) (out []string) {
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}

func codeText(code int) string {
	if code == 0 {
		return "default"
	}
	return strconv.Itoa(code)
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
