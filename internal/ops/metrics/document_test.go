package metrics

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const page = "../../../docs/metrics.md"

// docs/metrics.md has a row of each metric. ALMANAC_WRITE=1 writes them.
func TestDocument(t *testing.T) {
	t.Parallel()
	const begin, end = "<!-- metrics -->\n", "<!-- /metrics -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s lacks the lines %q and %q", page, begin, end)
	}
	want := before + begin + table() + end + after
	if os.Getenv("ALMANAC_WRITE") != "" {
		if err := os.WriteFile(page, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Error("docs/metrics.md is not what package metrics declares: run `make reference`")
	}
}

func table() string {
	var b strings.Builder
	b.WriteString("\n| metric | kind | labels | what it is |\n|---|---|---|---|\n")
	for _, m := range All() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, strings.Join(m.Labels, ", "), m.Help)
	}
	b.WriteString("\n")
	return b.String()
}

// TestNames holds the rules of Prometheus for names: base units, _total for counters alone, each name once.
func TestNames(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^almanac_[a-z]+(_[a-z]+)*$`)
	var names []string
	for _, m := range All() {
		switch {
		case !form.MatchString(m.Name) || slices.Contains(names, m.Name):
			t.Errorf("%q is not a name, or there is one already", m.Name)
		case strings.HasSuffix(m.Name, "_total") != (m.Kind == Counter):
			t.Errorf("%s is a %s: the names of counters end in _total, and no other", m.Name, m.Kind)
		case (m.Kind == Histogram) != (len(m.Buckets) > 0):
			t.Errorf("%s: a histogram has buckets, and no other", m.Name)
		case !strings.HasSuffix(m.Help, "."):
			t.Errorf("%s: %q is not a sentence", m.Name, m.Help)
		}
		names = append(names, m.Name)
	}
}
