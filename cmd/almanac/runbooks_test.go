package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// called is a command line of Almanac in a runbook: in a block, or in a sentence.
var called = regexp.MustCompile("(?m)^\\$ almanac (.+)$|`almanac ([^`]+)`")

// Every command line in a runbook is one of Almanac's.
func TestRunbooksNameCommands(t *testing.T) {
	t.Parallel()
	found, err := filepath.Glob("../../docs/runbooks/*.md")
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all := called.FindAllStringSubmatch(string(text), -1)
		if len(all) == 0 {
			t.Errorf("%s: no command", path)
		}
		for _, m := range all {
			if err := runs(strings.Fields(m[1] + m[2])); err != nil {
				t.Errorf("%s: almanac %s%s: %v", path, m[1], m[2], err)
			}
		}
	}
}
