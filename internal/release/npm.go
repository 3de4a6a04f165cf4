package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// pageLock says which versions of npm packages the page is built of.
const pageLock = "internal/gateway/console/web/package-lock.json"

// pageLicences is the file of a page that names the packages in it, and has their licences.
const pageLicences = "licences.txt"

// npmPackage is one that the page contains code of.
type npmPackage struct{ name, version, licence string }

// readPagePackages returns the licences of the npm packages that a page contains, and what these are.
func readPagePackages(dir, lock string) (licences []byte, all []npmPackage, err error) {
	if licences, err = os.ReadFile(filepath.Join(dir, pageLicences)); err != nil {
		return nil, nil, fmt.Errorf("the licences of the page, which make console writes: %w", err)
	}
	text, err := os.ReadFile(lock)
	if err != nil {
		return nil, nil, err
	}
	var locked struct {
		Packages map[string]struct{ Version, License string }
	}
	if err := json.Unmarshal(text, &locked); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", lock, err)
	}
	for _, name := range packagesIn(string(licences)) {
		p := locked.Packages["node_modules/"+name]
		if p.Version == "" || p.License == "" {
			return nil, nil, fmt.Errorf("the page contains the package %s, of which %s does not have the version and the licence: build the page again by make console", name, lock)
		}
		all = append(all, npmPackage{name, p.Version, p.License})
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("%s names no package: build the page again by make console", filepath.Join(dir, pageLicences))
	}
	return licences, all, nil
}

// packagesIn returns the names of the packages in the licences of a page: a list of them stands before each text.
func packagesIn(licences string) (names []string) {
	listed := false
	for line := range strings.Lines(licences) {
		line = strings.TrimSuffix(line, "\n")
		switch name, _, ok := strings.Cut(line, ": "); {
		case line == "The page contains":
			listed = true
		case listed && ok:
			names = append(names, name)
		default:
			listed = false
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// addComponents adds npm packages to a list of components in CycloneDX's JSON.
func addComponents(list []byte, packages []npmPackage) ([]byte, error) {
	var doc map[string]any
	dec := json.NewDecoder(bytes.NewReader(list))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("list of components: %w", err)
	}
	components, ok := doc["components"].([]any)
	if !ok {
		return nil, fmt.Errorf("the list of components has %T in place of components", doc["components"])
	}
	for _, p := range packages {
		purl := "pkg:npm/" + strings.Replace(p.name, "@", "%40", 1) + "@" + p.version
		one := map[string]any{
			"bom-ref": purl, "type": "library", "name": p.name, "version": p.version, "purl": purl, "scope": "required",
			"licenses": []any{map[string]any{"license": map[string]any{"id": p.licence}}},
		}
		if group, name, scoped := strings.Cut(p.name, "/"); scoped {
			one["group"], one["name"] = group, name
		}
		components = append(components, one)
	}
	doc["components"] = components
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(doc)
	return out.Bytes(), err
}
