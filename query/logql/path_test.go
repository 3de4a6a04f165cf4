package logql

import (
	"reflect"
	"testing"

	"github.com/alecthomas/participle/v2/lexer"
)

// Where a label's value stands in a line's JSON.
func TestPathOfALabel(t *testing.T) {
	for text, want := range map[string][]any{
		`a`:                  {"a"},
		`a.b`:                {"a", "b"},
		`a[0].b`:             {"a", 0, "b"},
		`["a b"]`:            {"a b"},
		`["a]b"]["c[0]"].d`:  {"a]b", "c[0]", "d"},
		`["say \"hi\"]"][2]`: {`say "hi"]`, 2},
		`[0`:                 nil,
		`["a]`:               nil,
		`[-1]`:               nil,
		`["a"b]`:             nil,
		`a..b`:               nil,
		``:                   nil,
	} {
		t.Run(text, func(t *testing.T) {
			quoted := "`" + text + "`"
			p, err := extraction(lexer.Position{}, &paramTerm{Name: "x", Text: &quoted})
			if (err == nil) != (want != nil) || err == nil && !reflect.DeepEqual(p.keys, want) {
				t.Errorf("got %v, %v, want %v", p.keys, err, want)
			}
		})
	}
}
