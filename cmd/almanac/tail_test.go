package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A tail goes on where it was when everything is killed and started again, on
// other ports: nothing is left out and nothing comes twice. So does one that is
// itself started again, from the last position.
func TestTailSurvivesKill(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	up := b.up()
	const each = 300
	numbers := func(from int) string {
		var s strings.Builder
		for i := range each {
			fmt.Fprintln(&s, from+i)
		}
		return s.String()
	}
	out := b.write("tail.out", "")
	f, err := os.OpenFile(out, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	b.ok(numbers(0), "send", "app", "-q")
	tail := b.command(t.Context(), "tail", "app", "--from", "-1h", "--with-pos", "--limit", fmt.Sprint(2*each))
	tail.Stdout = f
	if err := tail.Start(); err != nil {
		t.Fatal(err)
	}
	heard := func() []string {
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	embeddedtest.Eventually(t, maxWait, func() error {
		if n := len(heard()); n < each/2 {
			return fmt.Errorf("%d events were heard", n)
		}
		return nil
	})
	up.stop(syscall.SIGKILL)
	b.up()
	b.ok(numbers(each), "send", "app", "-q")
	if code := exitStatus(t, tail.Wait()); code != exitOK {
		t.Fatalf("tail: exit %d", code)
	}
	lines := heard()
	check := func(lines []string, want []int) {
		t.Helper()
		var got []int
		for _, line := range lines {
			var ev struct{ Message string }
			var n int
			if err := json.Unmarshal([]byte(line), &ev); err != nil {
				t.Fatal(err)
			}
			if _, err := fmt.Sscan(ev.Message, &n); err != nil {
				t.Fatal(err)
			}
			got = append(got, n)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%d events were heard, want %d, each once: %v", len(got), len(want), got)
		}
	}
	all := make([]int, 2*each)
	for i := range all {
		all[i] = i
	}
	check(lines, all)

	var last struct {
		Pos string `json:"_pos"`
	}
	if err := json.Unmarshal([]byte(lines[each/3-1]), &last); err != nil {
		t.Fatal(err)
	}
	rest := strings.Split(strings.TrimSpace(b.ok("", "tail", "app", "--cursor", last.Pos, "--limit", fmt.Sprint(2*each-each/3))), "\n")
	check(append(lines[:each/3:each/3], rest...), all)

	for says, args := range map[string][]string{
		"bad position":            {"--from-pos", "x"},
		"behind the stream's end": {"--from-pos", "99999999.1"},
		"from-pos":                {"--from-pos", "1.1", "--cursor", "1.1"},
		"-15m":                    {"--from", "yesterday"},
		"did you mean level?":     {"--where", "levl = 'x'"},
		"did you mean message?":   {"--fields", "ts,mesage"},
	} {
		r := b.run("", append([]string{"tail", "app"}, args...)...)
		if r.code != exitUsage {
			t.Errorf("%v: exit %d, want %d", args, r.code, exitUsage)
		}
		contains(t, r.err, says)
	}
}
