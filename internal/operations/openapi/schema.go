package openapi

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Schema is one of a value.
type Schema struct {
	Ref         string     `yaml:"$ref,omitempty"`
	Type        string     `yaml:"type,omitempty"`
	Format      string     `yaml:"format,omitempty"`
	Nullable    bool       `yaml:"nullable,omitempty"`
	Description string     `yaml:"description,omitempty"`
	Enum        []string   `yaml:"enum,omitempty,flow"`
	Pattern     string     `yaml:"pattern,omitempty"`
	MinLength   int        `yaml:"minLength,omitempty"`
	MaxLength   int        `yaml:"maxLength,omitempty"`
	Minimum     *int       `yaml:"minimum,omitempty"`
	Maximum     *int       `yaml:"maximum,omitempty"`
	MinItems    int        `yaml:"minItems,omitempty"`
	MaxItems    int        `yaml:"maxItems,omitempty"`
	Example     string     `yaml:"example,omitempty"`
	AnyOf       []*Schema  `yaml:"anyOf,omitempty"`
	Items       *Schema    `yaml:"items,omitempty"`
	Required    []string   `yaml:"required,omitempty,flow"`
	Properties  properties `yaml:"properties,omitempty"`
	// Additional is false, or the schema of further members.
	Additional any `yaml:"additionalProperties,omitempty"`
}

// properties keep the order of a type's members.
type properties []property

type property struct {
	name   string
	schema *Schema
}

// MarshalYAML implements yaml.Marshaler.
func (all properties) MarshalYAML() (any, error) {
	out := &yaml.Node{Kind: yaml.MappingNode}
	for _, p := range all {
		key, value := &yaml.Node{}, &yaml.Node{}
		key.SetString(p.name)
		if err := value.Encode(p.schema); err != nil {
			return nil, err
		}
		out.Content = append(out.Content, key, value)
	}
	return out, nil
}

// Types says which Go types the names of answers and bodies are, and what the types do not say.
type Types struct {
	// Named are the components. One whose value is a Schema is that.
	Named map[string]any
	// Known are the schemas of types that say nothing of themselves, such as those that write their own JSON.
	Known map[reflect.Type]Schema
	// Members are added to a member's schema, by "Component.member.member". A Type there, or a Ref, replaces it.
	Members map[string]Schema
	// Requests are the components that a client sends: of them only what is named here is required.
	Requests map[string][]string
}

// Ref is a schema that stands elsewhere.
func Ref(name string) *Schema { return &Schema{Ref: "#/components/schemas/" + name} }

// maker makes schemas.
type maker struct {
	types *Types
	names map[reflect.Type]string
	made  map[string]*Schema
	used  map[string]bool       // of Members
	open  map[reflect.Type]bool // under way
}

func newMaker(types *Types) (*maker, error) {
	m := &maker{types: types, names: map[reflect.Type]string{}, made: map[string]*Schema{}, used: map[string]bool{}, open: map[reflect.Type]bool{}}
	for name, value := range types.Named {
		if _, own := value.(Schema); !own {
			m.names[reflect.TypeOf(value)] = name
		}
	}
	for name, value := range types.Named {
		if s, own := value.(Schema); own {
			m.made[name] = &s
			continue
		}
		s, err := m.component(name, reflect.TypeOf(value))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		m.made[name] = s
	}
	for at := range types.Members {
		if !m.used[at] {
			return nil, fmt.Errorf("no type has the member %s", at)
		}
	}
	return m, nil
}

func (m *maker) named(name string) (*Schema, error) {
	if m.made[name] == nil {
		return nil, fmt.Errorf("no type is named %s", name)
	}
	return Ref(name), nil
}

func (m *maker) component(name string, t reflect.Type) (*Schema, error) {
	s, err := m.object(name, t)
	if asked, is := m.types.Requests[name]; is && err == nil {
		s.Required = asked
	}
	return m.said(name, s), err
}

// of is the schema of a type. at is where it is used.
func (m *maker) of(at string, t reflect.Type) (*Schema, error) {
	if s, known := m.types.Known[t]; known {
		return &s, nil
	}
	if name, ok := m.names[t]; ok {
		return Ref(name), nil
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return &Schema{Type: "string", Format: "date-time"}, nil
	case reflect.TypeFor[json.RawMessage]():
		return &Schema{}, nil
	case reflect.TypeFor[[]byte]():
		return &Schema{Type: "string", Format: "byte"}, nil
	}
	if t.Kind() == reflect.Pointer {
		return m.of(at, t.Elem())
	}
	if t.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return &Schema{Type: "string"}, nil
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil, fmt.Errorf("%s: %s writes its own JSON: say its schema", at, t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return &Schema{Type: "boolean"}, nil
	case reflect.String:
		return &Schema{Type: "string"}, nil
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: "number"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: "integer"}, nil
	case reflect.Slice, reflect.Array:
		items, err := m.of(at, t.Elem())
		return &Schema{Type: "array", Items: items}, err
	case reflect.Map:
		values, err := m.of(at, t.Elem())
		return &Schema{Type: "object", Additional: values}, err
	case reflect.Struct:
		return m.object(at, t)
	}
	return nil, fmt.Errorf("%s: %s has no schema", at, t)
}

// object is the schema of a struct.
func (m *maker) object(at string, t reflect.Type) (*Schema, error) {
	if m.open[t] {
		return nil, fmt.Errorf("%s: %s is within itself: name it", at, t)
	}
	m.open[t] = true
	defer delete(m.open, t)
	s := &Schema{Type: "object", Additional: false}
	return s, m.members(at, t, s, false)
}

// members adds the members of a struct; those of an embedded one do not replace what is there.
func (m *maker) members(at string, t reflect.Type, s *Schema, embedded bool) error {
	for f := range fieldsOf(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if f.Anonymous && name == "" {
			if err := m.members(at, f.Type, s, true); err != nil {
				return err
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		of := func(p property) bool { return p.name == name }
		if embedded && slices.ContainsFunc(s.Properties, of) {
			continue
		}
		s.Properties = slices.DeleteFunc(s.Properties, of)
		sub, err := m.of(at+"."+name, f.Type)
		if err != nil {
			return err
		}
		words := strings.Split(options, ",")
		if slices.Contains(words, "string") {
			sub = &Schema{Type: "string", Pattern: "^-?[0-9]+$"}
		}
		omitted := slices.Contains(words, "omitempty") || slices.Contains(words, "omitzero")
		if f.Type.Kind() == reflect.Pointer && !omitted && sub.Ref == "" && sub.Type != "object" { // a member that stands in any case
			sub.Nullable = true
		}
		if !omitted && !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
		s.Properties = append(s.Properties, property{name, m.said(at+"."+name, sub)})
	}
	return nil
}

// fieldsOf yields the exported fields of a struct, and those it embeds.
func fieldsOf(t reflect.Type) func(func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if f := t.Field(i); (f.IsExported() || f.Anonymous) && !yield(f) {
				return
			}
		}
	}
}

// said adds to a member's schema what is said of it.
func (m *maker) said(at string, s *Schema) *Schema {
	more, ok := m.types.Members[at]
	if !ok {
		return s
	}
	m.used[at] = true
	if more.Type != "" || more.Ref != "" {
		return &more
	}
	if s.Ref != "" {
		return s // nothing may stand beside a reference
	}
	out := *s
	into, from := reflect.ValueOf(&out).Elem(), reflect.ValueOf(more)
	for i := range from.NumField() {
		if !from.Field(i).IsZero() {
			into.Field(i).Set(from.Field(i))
		}
	}
	return &out
}
