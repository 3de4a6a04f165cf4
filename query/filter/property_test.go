package filter

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// source writes a random filter, with keywords in any case and needless
// parentheses.
func source(t *rapid.T, depth int) string {
	word := func(s string) string {
		if rapid.Bool().Draw(t, "lower") {
			return strings.ToLower(s)
		}
		return s
	}
	if depth > 0 {
		switch rapid.IntRange(0, 3).Draw(t, "shape") {
		case 0:
			return source(t, depth-1) + " " + word("AND") + "\n" + source(t, depth-1)
		case 1:
			return source(t, depth-1) + " " + word("OR") + " " + source(t, depth-1)
		case 2:
			return word("NOT") + "(" + source(t, depth-1) + ")"
		case 3:
			return "( " + source(t, depth-1) + ")"
		}
	}
	text := Quote(rapid.String().Draw(t, "text"))
	number := rapid.SampledFrom([]string{"0", "-1", "+7", "1.5", "2e3", "-0.25E-2"}).Draw(t, "number")
	order := rapid.SampledFrom([]string{"=", "!=", "<", "<=", ">", ">="}).Draw(t, "order")
	key := Quote(rapid.StringN(1, 20, 80).Draw(t, "key"))
	return rapid.SampledFrom([]string{
		"level " + order + text,
		"attributes[" + key + "]" + order + text,
		"attributes[" + key + "] " + order + number,
		"attributes.a.b-c " + word("IN") + " (" + text + "," + number + ")",
		"user_id " + word("NOT IN") + " (" + text + ")",
		"message " + word("CONTAINS") + text,
		"message " + word("MATCHES") + `'^a|\\d'`,
		word("EXISTS") + " attributes[" + key + "]",
		word("EXISTS") + " region",
		"duration_ms " + order + number,
		"cached = " + word("TRUE"),
		"ts " + order + " -5m",
		"month " + order + "'2026-11'",
		"shard = '00c0ffee00c0ffee'",
		"`contains` = " + text,
	}).Draw(t, "leaf")
}

// Printing a filter and reading it again changes nothing.
func TestPrintParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := source(t, rapid.IntRange(0, 4).Draw(t, "depth"))
		first, err := ParseAt(src, testTopic(), testNow)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		sameSQL(t, first)
	})
}

func sameSQL(t rapid.TB, first *Expr) {
	t.Helper()
	second, err := Parse(first.String(), testTopic())
	if err != nil {
		t.Fatalf("%s: %v", first, err)
	}
	where1, params1 := first.SQL()
	where2, params2 := second.SQL()
	if diff := cmp.Diff(where1, where2); diff != "" {
		t.Fatalf("%s: %s", first, diff)
	}
	if diff := cmp.Diff(params1, params2); diff != "" {
		t.Fatalf("%s: %s", first, diff)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "level = 'error'", `NOT (a.b IN (1, "x"))`, "attributes['k'] > -1.5e3", "ts > -15m or exists attributes.x",
		"message matches '(a|b)*' and not cached = true", "level = '\\", "`contains` = ''", "((((", "\xff = '\xff'",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		e, err := ParseAt(src, testTopic(), testNow)
		if err != nil {
			if bad := (*Error)(nil); !asError(err, &bad) || bad.Column < 1 || bad.Render() == "" {
				t.Fatalf("%q: %v", src, err)
			}
			return
		}
		if len(e.String()) > MaxFilterBytes {
			return // a relative time may print longer
		}
		sameSQL(t, e)
	})
}

func asError(err error, target **Error) bool {
	return errors.As(err, target)
}
