package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/markdown"
)

const design = "DESIGN.md"

func main() {
	write := flag.Bool("w", false, "write the map into "+design)
	flag.Parse()
	if err := run(*write); err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
}

func run(write bool) error {
	list, err := exec.Command("go", "list", "-f", "{{.Module.Path}}\t{{.ImportPath}}\t{{.Doc}}\t{{join .Imports \" \"}}", "./...").Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	all := folders(string(list))
	if c := circle(all); c != "" {
		return fmt.Errorf("these folders stand on each other: %s", c)
	}
	err = markdown.Section(design, "layout", draw(all), write)
	if errors.Is(err, markdown.ErrOther) {
		err = fmt.Errorf("the map is not that of the packages: %w: run go run ./internal/lint/layout -w", err)
	}
	return err
}

// folder is a folder at the top or below internal, with the packages in it.
type folder struct {
	name  string   // such as "query" or "tables"
	short string   // what it is for
	parts []string // packages below it
	on    []string // folders that it imports
	// public says that a part of it is not below internal.
	public bool
}

// folders groups the packages of go list by folder, in the order of their names.
func folders(list string) []*folder {
	found := map[string]*folder{}
	at := func(name string) *folder {
		if found[name] == nil {
			found[name] = &folder{name: name}
		}
		return found[name]
	}
	for line := range strings.Lines(list) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 || strings.HasSuffix(f[1], "test") { // harness
			continue
		}
		module, path, short := f[0], f[1], f[2]
		name, below := folderOf(module, path)
		r := at(name)
		r.public = r.public || !strings.HasPrefix(path, module+"/internal/")
		if below == "" {
			r.short = short
		} else if first, _, _ := strings.Cut(below, "/"); !slices.Contains(r.parts, first) {
			r.parts = append(r.parts, first)
		}
		for _, to := range strings.Fields(f[3]) {
			if to != module && !strings.HasPrefix(to, module+"/") {
				continue
			}
			if other, _ := folderOf(module, to); other != name && !slices.Contains(r.on, other) {
				r.on = append(r.on, other)
			}
		}
	}
	var out []*folder
	for _, r := range found {
		slices.Sort(r.on)
		slices.Sort(r.parts)
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *folder) int { return strings.Compare(a.name, b.name) })
	return out
}

// folderOf returns the folder of a package, and the package's path below it. A folder may have a half below internal:
// internal/query belongs to query.
func folderOf(module, path string) (name, below string) {
	rel := strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
	if rel == "" {
		return "almanac", ""
	}
	for _, holds := range []string{"internal/", "cmd/"} {
		rel = strings.TrimPrefix(rel, holds)
	}
	name, below, _ = strings.Cut(rel, "/")
	if path == module+"/cmd/"+rel {
		name = "cmd/" + name
	}
	return name, below
}
