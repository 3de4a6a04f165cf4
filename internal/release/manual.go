package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// shells are those that completion is written for, with the name that each expects its file under.
var shells = map[string]string{"bash": "almanac", "zsh": "_almanac", "fish": "almanac.fish"}

// writeManual lets a binary of this machine write completion and man pages, and returns them as files of an archive.
func writeManual(ctx context.Context, o options, work string) (files []file, err error) {
	here := filepath.Join(work, "here", "almanac")
	if err := build(ctx, o.version, target{runtime.GOOS, runtime.GOARCH}, here); err != nil {
		return nil, err
	}
	for shell, name := range shells {
		text, err := exec.CommandContext(ctx, here, "completion", shell).Output()
		if err != nil {
			return nil, fmt.Errorf("completion for %s: %w", shell, err)
		}
		files = append(files, file{name: "completion/" + shell + "/" + name, mode: 0o644, data: text})
	}
	pages := filepath.Join(work, "man1")
	if err := run(ctx, nil, here, "man", pages); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(pages)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(pages, e.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, file{name: "man/man1/" + e.Name(), mode: 0o644, data: text})
	}
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	return append(files, file{name: "LICENSE", mode: 0o644, data: licence}), nil
}
