package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const twoLicences = `The page contains
@codemirror/view: MIT License Copyright (C) 2018-2021 by Marijn Haverbeke
crelt: Copyright (C) 2020 by Marijn Haverbeke

Permission is hereby granted: free of charge

The page contains
uplot: The MIT License (MIT) Copyright (c) 2022 Leon Sorokin

Permission is hereby granted, to any person: of another kind
`

// The page's packages are those that its licences name, each with the version that it is built of; one that is not known is refused.
func TestPagePackages(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "package-lock.json")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(lock, `{"packages": {"": {"version": "1"}, "node_modules/@codemirror/view": {"version": "6.43.15", "license": "MIT"},
"node_modules/crelt": {"version": "1.0.6", "license": "MIT"}, "node_modules/uplot": {"version": "1.6.32", "license": "MIT"}, "node_modules/esbuild": {"version": "0.27.1", "license": "MIT"}}}`)
	if _, _, err := readPagePackages(dir, lock); err == nil || !strings.Contains(err.Error(), "make console") {
		t.Errorf("a page without licences: %v", err)
	}
	write(filepath.Join(dir, pageLicences), twoLicences)
	licences, got, err := readPagePackages(dir, lock)
	want := []npmPackage{{"@codemirror/view", "6.43.15", "MIT"}, {"crelt", "1.0.6", "MIT"}, {"uplot", "1.6.32", "MIT"}}
	if err != nil || string(licences) != twoLicences || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	for name, text := range map[string]string{"an unknown one": "The page contains\nleft-pad: MIT\n\nx\n", "none": "nothing\n"} {
		write(filepath.Join(dir, pageLicences), text)
		if _, _, err := readPagePackages(dir, lock); err == nil || !strings.Contains(err.Error(), "make console") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The page that is built here, if one is, names packages that its lock file has.
func TestPackagesOfThePage(t *testing.T) {
	const tree = "../../"
	if _, err := os.Stat(filepath.Join(tree, pageDir, pageLicences)); err != nil {
		t.Skip("the page is not built here")
	}
	_, got, err := readPagePackages(filepath.Join(tree, pageDir), filepath.Join(tree, pageLock))
	if err != nil || !slices.ContainsFunc(got, func(p npmPackage) bool { return p.name == "preact" }) {
		t.Errorf("%v, %v", got, err)
	}
}

// A list of components keeps what it has, and gets the packages as CycloneDX says them.
func TestComponents(t *testing.T) {
	list := []byte(`{"bomFormat": "CycloneDX", "version": 1, "components": [{"name": "github.com/nats-io/nats.go", "purl": "pkg:golang/x@v1?type=module&goos=linux"}]}`)
	got, err := addComponents(list, []npmPackage{{"@codemirror/view", "6.43.15", "MIT"}, {"uplot", "1.6.32", "MIT"}})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := addComponents(list, []npmPackage{{"@codemirror/view", "6.43.15", "MIT"}, {"uplot", "1.6.32", "MIT"}}); string(again) != string(got) {
		t.Error("two lists of the same differ")
	}
	var doc struct {
		BOMFormat  string
		Version    int
		Components []struct {
			Ref                        string `json:"bom-ref"`
			Group, Name, Version, Type string
			PURL                       string
			Licenses                   []struct{ License struct{ ID string } }
		}
	}
	if err := json.Unmarshal(got, &doc); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	var said []string
	for _, c := range doc.Components {
		one := c.Type + " " + c.Group + " " + c.Name + " " + c.Version + " " + c.PURL
		for _, l := range c.Licenses {
			one += " " + l.License.ID
		}
		said = append(said, one)
		if c.Type != "" && c.Ref != c.PURL {
			t.Errorf("%s is referred to as %q", c.PURL, c.Ref)
		}
	}
	want := []string{
		"  github.com/nats-io/nats.go  pkg:golang/x@v1?type=module&goos=linux",
		"library @codemirror view 6.43.15 pkg:npm/%40codemirror/view@6.43.15 MIT", "library  uplot 1.6.32 pkg:npm/uplot@1.6.32 MIT",
	}
	if doc.BOMFormat != "CycloneDX" || doc.Version != 1 || !slices.Equal(said, want) {
		t.Errorf("%+v\n%s\nwant\n%s", doc, strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
	for name, text := range map[string]string{"no JSON": "x", "no components": "{}"} {
		if _, err := addComponents([]byte(text), nil); err == nil {
			t.Errorf("%s: it was taken", name)
		}
	}
}
