package openapi

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// TypeScript returns the document's components as types of TypeScript.
func (d *Document) TypeScript() string {
	var b strings.Builder
	b.WriteString("// Written by `make reference` of the API's answers. Change those instead.\n")
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		fmt.Fprintf(&b, "\nexport type %s = %s;\n", name, d.Components.Schemas[name].typeScript(""))
	}
	return b.String()
}

// typeScript is the type of a schema whose members are indented by in.
func (s *Schema) typeScript(in string) string {
	if s == nil {
		return "unknown"
	}
	is := s.plainTypeScript(in)
	if s.Nullable && is != "unknown" {
		is += " | null"
	}
	return is
}

func (s *Schema) plainTypeScript(in string) string {
	switch {
	case s.Ref != "":
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:]
	case len(s.AnyOf) > 0:
		all := make([]string, len(s.AnyOf))
		for i, one := range s.AnyOf {
			all[i] = one.typeScript(in)
		}
		return strings.Join(all, " | ")
	case len(s.Enum) > 0:
		all := make([]string, len(s.Enum))
		for i, word := range s.Enum {
			all[i] = strconv.Quote(word)
		}
		return strings.Join(all, " | ")
	}
	switch s.Type {
	case "string", "boolean":
		return s.Type
	case "integer", "number":
		return "number"
	case "array":
		return "Array<" + s.Items.typeScript(in) + ">"
	case "object":
		return s.objectTypeScript(in)
	}
	return "unknown"
}

func (s *Schema) objectTypeScript(in string) string {
	further, has := s.Additional.(*Schema)
	if len(s.Properties) == 0 {
		if has {
			return "Record<string, " + further.typeScript(in) + ">"
		}
		return "Record<string, unknown>"
	}
	var b strings.Builder
	b.WriteString("{\n")
	for _, p := range s.Properties {
		optional := "?"
		if slices.Contains(s.Required, p.name) {
			optional = ""
		}
		fmt.Fprintf(&b, "%s  %s%s: %s;\n", in, memberName(p.name), optional, p.schema.typeScript(in+"  "))
	}
	if has || s.Additional == true {
		fmt.Fprintf(&b, "%s  [name: string]: unknown;\n", in)
	}
	return b.String() + in + "}"
}

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func memberName(name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return strconv.Quote(name)
}
