package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
)

// licenceName is how the files are called that a module's licence may be in.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// readLicences returns the licence files of Go, of Almanac, and of each module that a target's binary has code of.
func readLicences(ctx context.Context, t target) (files []file, err error) {
	goRoot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env GOROOT: %w", err)
	}
	modules, err := modulesOf(ctx, t)
	if err != nil {
		return nil, err
	}
	modules["go"] = string(bytes.TrimSpace(goRoot))
	for path, dir := range modules {
		found, err := licencesIn(dir)
		if err != nil {
			return nil, fmt.Errorf("licence of %s: %w", path, err)
		}
		for _, f := range found {
			files = append(files, file{name: "licences/" + path + "/" + f.name, mode: 0o644, data: f.data})
		}
	}
	return files, nil
}

// modulesOf returns the folder of each module that is linked into the binary.
func modulesOf(ctx context.Context, t target) (map[string]string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=Module", "github.com/almanac-events/almanac/cmd/almanac")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	modules := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *struct{ Path, Dir string } }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return modules, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Module != nil {
			modules[p.Module.Path] = p.Module.Dir
		}
	}
}

// licencesIn returns the licence files at the top of a module.
func licencesIn(dir string) (files []file, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenceName.MatchString(e.Name()) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: e.Name(), data: data})
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no file called LICENSE, COPYING or so in %s", dir)
	}
	return files, nil
}
