package logql

import (
	"maps"
	"slices"
	"strings"
)

// Entry is a line on its way through a pipeline.
type Entry struct {
	Ts   int64 // unix ns
	Line string
	// Stream names the stream of the event. Structured is what else the event has: its other columns and attributes.
	// Parsed is what stages made. A name is in one of them.
	Stream, Structured, Parsed map[string]string

	topic, id string // of the event, whatever stages make of its labels
}

// The labels by which a stage says what it could not do.
const (
	ErrorLabel   = "__error__"
	DetailsLabel = "__error_details__"
)

// Get returns a label; empty: it is not there.
func (e *Entry) Get(name string) string {
	for _, in := range []map[string]string{e.Parsed, e.Structured, e.Stream} {
		if v, ok := in[name]; ok {
			return v
		}
	}
	if as := aliases[name]; as != "" {
		return e.Get(as)
	}
	return ""
}

// set gives a label a value, wherever it came from.
func (e *Entry) set(name, value string) {
	e.remove(name)
	if e.Parsed == nil {
		e.Parsed = map[string]string{}
	}
	e.Parsed[name] = value
}

func (e *Entry) remove(name string) {
	delete(e.Parsed, name)
	delete(e.Structured, name)
	delete(e.Stream, name)
}

// extract adds what a parser found in a line. A label that the event has already stays, as Loki has it.
func (e *Entry) extract(name, value string) {
	_, stream := e.Stream[name]
	_, structured := e.Structured[name]
	if stream || structured {
		name += "_extracted"
	}
	if _, ok := e.Parsed[name]; !ok {
		e.set(name, value)
	}
}

func (e *Entry) fail(kind, details string) {
	e.set(ErrorLabel, kind)
	e.set(DetailsLabel, details)
}

// Labels returns all labels, those that are empty left out.
func (e *Entry) Labels() map[string]string {
	all := maps.Clone(e.Stream)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, e.Structured)
	maps.Copy(all, e.Parsed)
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	return all
}

// bytes is what an entry takes until it is written: its three maps, its texts, and as much twice in the answer, which grows by doubling.
func (e *Entry) bytes() int {
	n := 1000 + 3*len(e.Line)
	for _, in := range []map[string]string{e.Stream, e.Structured, e.Parsed} {
		for name, v := range in {
			n += 64 + 3*(len(name)+len(v))
		}
	}
	return n
}

// LabelName turns a name into one that a label may have: letters, digits and _, as Loki does.
func LabelName(name string) string {
	clean := func(i int, r rune) bool {
		return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || i > 0 && r >= '0' && r <= '9'
	}
	if plain := !strings.ContainsFunc(name, func(r rune) bool { return !clean(1, r) }); plain && name != "" && clean(0, rune(name[0])) {
		return name
	}
	var b strings.Builder
	for i, r := range name {
		switch {
		case clean(i, r):
			b.WriteRune(r)
		case i == 0 && r >= '0' && r <= '9':
			b.WriteString("_" + string(r))
		default:
			b.WriteByte('_')
		}
	}
	return b.String()
}

// FormatLabels is a set of labels in Loki's and Prometheus's text form, by name.
func FormatLabels(all map[string]string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + "=" + quoted(all[name]))
	}
	b.WriteByte('}')
	return b.String()
}

// quoted writes a value as Loki does.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
