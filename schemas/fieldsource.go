package schemas

import (
	"fmt"
	"slices"
)

// otherName returns the other name of a promoted field that has two, "" when it has one.
func (t *Topic) otherName(name string) string {
	for i := range t.Fields {
		switch f := &t.Fields[i]; {
		case f.From == "":
		case f.Name == name:
			return f.From
		case f.From == name:
			return f.Name
		}
	}
	return ""
}

// validateSources reports what is wrong with the names that fields are taken from.
func (t *Topic) validateSources() error {
	seen := map[string]string{}
	for _, f := range t.Fields {
		switch {
		case f.From == "":
			continue
		case len(f.From) > MaxAttrKeyBytes:
			return fmt.Errorf("field %q is taken from a name of %d bytes, the limit is %d", f.Name, len(f.From), MaxAttrKeyBytes)
		case f.From == f.Name:
			return fmt.Errorf("field %q is taken from its own name: leave from out", f.Name)
		case JSONWords[f.From] != "" || slices.Contains(reservedColumns, f.From):
			return fmt.Errorf("field %q cannot be taken from %q: that fills a column which every topic has", f.Name, f.From)
		case slices.ContainsFunc(t.Fields, func(other Field) bool { return other.Name == f.From }):
			return fmt.Errorf("field %q cannot be taken from %q, which is a field of its own", f.Name, f.From)
		case seen[f.From] != "":
			return fmt.Errorf("fields %q and %q are both taken from %q", seen[f.From], f.Name, f.From)
		}
		seen[f.From] = f.Name
	}
	return nil
}

// EitherNameRules returns the topic's privacy rules, each also for the other name of a field
// that has two: a rule holds for a value by whichever name it comes.
func (t *Topic) EitherNameRules() []Private { return t.underBothNames(t.PII) }

func (t *Topic) underBothNames(rules []Private) []Private {
	var more []Private
	names := NamesUnder(rules)
	for _, f := range t.Fields {
		if f.From == "" {
			continue
		}
		byName, named := names.Rule(f.Name)
		bySource, sourced := names.Rule(f.From)
		switch {
		case named && !sourced:
			byName.Field = ColAttributes + "." + f.From
			more = append(more, byName)
		case sourced && !named:
			bySource.Field = f.Name
			more = append(more, bySource)
		}
	}
	return append(slices.Clip(rules), more...)
}

// TakenFirst reports which names are taken before the limit on attributes counts: those of
// promoted fields, and those of fields with rules.
func (t *Topic) TakenFirst() func(name string) bool {
	if t == nil || len(t.Fields)+len(t.PII)+len(t.Anonymise.Fields) == 0 {
		return func(string) bool { return false }
	}
	rules := slices.Clone(t.EitherNameRules())
	for _, f := range t.Anonymise.Fields {
		rules = append(rules, Private{Field: f})
	}
	names := NamesUnder(rules)
	promoted := map[string]bool{}
	for _, f := range t.Fields {
		promoted[f.Name] = true
		promoted[f.From] = true // a leaf without a name never fits
	}
	return func(name string) bool {
		_, ruled := names.Rule(name)
		return ruled || promoted[name] || names.Below(name)
	}
}
