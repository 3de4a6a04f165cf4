package main

import (
	"fmt"
	"slices"
	"strings"
)

// outside are folders that no other stands on and that would hide the rest: they import most.
var outside = []string{"bench", "cmd/almanac", "integration", "lint", "release"}

// escaped are what a cell of a table in Markdown cannot have as it is.
var escaped = strings.NewReplacer("|", `\|`, "<", "&lt;")

// draw returns the map: a picture in Mermaid, and a table.
func draw(all []*folder) string {
	var b strings.Builder
	b.WriteString("\n```mermaid\nflowchart TD\n")
	for _, r := range all {
		if slices.Contains(outside, r.name) {
			continue
		}
		var on []string
		for _, name := range reduced(all, r) {
			on = append(on, node(find(all, name)))
		}
		if len(on) > 0 {
			fmt.Fprintf(&b, "  %s --> %s\n", node(r), strings.Join(on, " & "))
		}
	}
	b.WriteString("```\n\n| folder | what it is for | below it |\n|---|---|---|\n")
	for _, r := range all {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.name, escaped.Replace(purpose(r)), strings.Join(r.parts, ", "))
	}
	b.WriteString("\n")
	return b.String()
}

// purpose is a folder's short text without the words that every one begins with.
func purpose(r *folder) string {
	short := strings.TrimSuffix(r.short, ".")
	if f := strings.Fields(short); len(f) > 2 && (f[0] == "Package" || f[0] == "Command") {
		short = strings.Join(f[2:], " ")
	}
	return short
}

// reduced returns the folders that r imports, but for those that another of them stands on.
func reduced(all []*folder, r *folder) (on []string) {
	for _, to := range r.on {
		if !slices.ContainsFunc(r.on, func(via string) bool { return via != to && reaches(all, via, to) }) {
			on = append(on, to)
		}
	}
	return on
}

// reaches reports whether a folder stands on another, directly or through others. There is no circle among them.
func reaches(all []*folder, from, to string) bool {
	return slices.ContainsFunc(find(all, from).on, func(next string) bool { return next == to || reaches(all, next, to) })
}

// circle returns a path from a folder to itself; empty: there is none.
func circle(all []*folder) string {
	done := map[string]bool{}
	var walk func(name string, path []string) string
	walk = func(name string, path []string) string {
		if i := slices.Index(path, name); i >= 0 {
			return strings.Join(append(path[i:], name), " → ")
		}
		if done[name] {
			return ""
		}
		for _, next := range find(all, name).on {
			if c := walk(next, append(path, name)); c != "" {
				return c
			}
		}
		done[name] = true
		return ""
	}
	for _, r := range all {
		if c := walk(r.name, nil); c != "" {
			return c
		}
	}
	return ""
}

// find returns the folder of a name.
func find(all []*folder, name string) *folder {
	if i := slices.IndexFunc(all, func(r *folder) bool { return r.name == name }); i >= 0 {
		return all[i]
	}
	return &folder{name: name}
}

// node is a folder in the picture: what is below internal alone is drawn round.
func node(r *folder) string {
	id := strings.ReplaceAll(r.name, "/", "_")
	if r.public {
		return fmt.Sprintf("%s[%s]", id, r.name)
	}
	return fmt.Sprintf("%s(%s)", id, r.name)
}
