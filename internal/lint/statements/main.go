package main

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// folders are those whose work is SQL: a short statement may stand in their Go.
var folders = []string{"internal/tables/", "query/", "internal/query/", "internal/rollups/", "schemas/"}

// exceptions are files and folders that may have any statement, each with the reason.
var exceptions = map[string]string{
	"bench/compare/":                     "writes into tables of its own, as other collectors do",
	"integration/":                       "harnesses of tests ask as a user does",
	"internal/bench/":                    "makes rows and measures what holds them; nothing else asks so",
	"internal/doctor/clickhouse.go":      "tries what a server lets an account do",
	"internal/embedded/":                 "starts, watches and stops a server, before there are tables",
	"internal/gateway/api/clickhouse.go": "the ping that ClickHouse's clients send",
	"internal/lint/statements/find.go":   "says how a statement begins",
}

func main() {
	all, err := read(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "statements:", err)
		os.Exit(2)
	}
	wrong := refused(all, exceptions)
	for _, line := range wrong {
		fmt.Println(line)
	}
	if len(wrong) > 0 {
		os.Exit(1)
	}
}

// read finds the statements of all files below a folder, by file.
func read(root string) (map[string][]found, error) {
	all := map[string][]found{}
	return all, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			all[path], err = statements(path, nil)
		}
		return err
	})
}

// refused says which statements may not stand where they are, and which exceptions nothing needs.
func refused(all map[string][]found, except map[string]string) (lines []string) {
	needed := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		for _, s := range all[path] {
			why := refuse(path, s.lines)
			name, excepted := exception(except, path)
			if why != "" && excepted {
				needed[name] = true
			} else if why != "" {
				lines = append(lines, fmt.Sprintf("%s:%d: %s: %.60q", path, s.line, why, s.text))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(except)) {
		if !needed[name] {
			lines = append(lines, name+": it is excepted and has no statement that needs to be")
		}
	}
	return lines
}

// refuse is why a statement of so many lines may not stand in a file, "" when it may.
func refuse(path string, lines int) string {
	if lines > maxLines {
		return fmt.Sprintf("a statement of %d lines, at most %d: make it a template of schemas/sql", lines, maxLines)
	}
	if slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(path, folder) }) {
		return ""
	}
	return "a statement outside of the folders of SQL: ask internal/tables, or make it a template of schemas/sql"
}

// exception is the one that covers a file.
func exception(except map[string]string, path string) (string, bool) {
	for name := range except {
		if path == name || strings.HasSuffix(name, "/") && strings.HasPrefix(path, name) {
			return name, true
		}
	}
	return "", false
}
