package frame

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/almanac-events/almanac/schemas"
)

// A name that an event has twice is kept as JSON keeps it, so that each name of a map has one value.
func TestNamesThatComeAgain(t *testing.T) {
	t.Parallel()
	many := func(n int, last string) (names, want []string) {
		for i := range n {
			names, want = append(names, "k"), append(want, fmt.Sprint("k#", i+1))
		}
		want[0] = "k"
		return append(names, last), append(want, last)
	}
	manyNames, manyWant := many(schemas.MaxAttrs-1, "l")
	long, kept := strings.Repeat("k", schemas.MaxAttrKeyBytes), strings.Repeat("k", schemas.MaxAttrKeyBytes-schemas.AttrNumberBytes)
	wide, keptWide := strings.Repeat("é", schemas.MaxAttrKeyBytes/2-1)+"ab", strings.Repeat("é", (schemas.MaxAttrKeyBytes-schemas.AttrNumberBytes)/2)
	odd, keptOdd := "a"+strings.Repeat("é", schemas.MaxAttrKeyBytes/2-1), "a"+strings.Repeat("é", (schemas.MaxAttrKeyBytes-schemas.AttrNumberBytes)/2-1)
	longNames, longWant := []string{long}, []string{long}
	for i := 2; i <= schemas.MaxAttrs; i++ {
		longNames, longWant = append(longNames, long), append(longWant, fmt.Sprint(kept, "#", i))
	}
	for _, c := range []struct {
		name        string
		names, want []string
	}{
		{"none", nil, nil},
		{"all differ", []string{"a", "ab", "b", "a#"}, []string{"a", "ab", "b", "a#"}},
		{"twice", []string{"a", "b", "a"}, []string{"a", "b", "a#2"}},
		{"three times", []string{"a", "a", "a"}, []string{"a", "a#2", "a#3"}},
		{"a number that is given", []string{"a", "a#2", "a"}, []string{"a", "a#2", "a#3"}},
		{"a number that is given later", []string{"a", "a", "a#2"}, []string{"a", "a#2", "a#2#2"}},
		{"what is not a number", []string{"a", "a#x", "a#-7", "a"}, []string{"a", "a#x", "a#-7", "a#2"}},
		{"a number of another length", []string{"a#256", "a", "a", "a"}, []string{"a#256", "a", "a#2", "a#3"}},
		{"a number that is given before", []string{"a", "a#3", "a", "a"}, []string{"a", "a#3", "a#2", "a#4"}},
		{"the largest number", []string{"a", "a#9223372036854775807", "a#99999999999999999999", "a", "a"}, []string{"a", "a#9223372036854775807", "a#99999999999999999999", "a#2", "a#3"}},
		{"as many as an event may have", manyNames, manyWant},
		{"as long as a name may be", []string{long, long, long}, []string{long, kept + "#2", kept + "#3"}},
		{"long ones with one beginning", []string{long, kept + "#2", long, kept + "kkkl", kept + "kkkl", kept, kept}, []string{long, kept + "#2", kept + "#3", kept + "kkkl", kept + "#4", kept, kept + "#5"}},
		{"long ones of wide letters", []string{wide, wide, odd, odd}, []string{wide, keptWide + "#2", odd, keptOdd + "#2"}},
		{"as many long ones as an event may have", longNames, longWant},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			topic := schemas.NewTopic("app")
			b := NewBuilder(&topic)
			for range 2 { // the row before is another's
				e := schemas.Event{}
				for i, name := range c.names {
					e.Attrs = append(e.Attrs, schemas.Int64(name, int64(i)))
				}
				b.Append(&e, 1, schemas.DerivedID(1, 2, 3))
			}
			_, payload := b.Encode()
			var r Reader
			if err := r.Open(slices.Clone(payload), &topic, topic.Version); err != nil {
				t.Fatal(err)
			}
			for row := range 2 {
				var got []string
				for i, a := range r.Event(row).Attrs {
					got = append(got, a.Key)
					if len(a.Key) > schemas.MaxAttrKeyBytes || !utf8.ValidString(a.Key) {
						t.Errorf("%q cannot be written again: it has %d bytes", a.Key, len(a.Key))
					}
					if a.Text() != fmt.Sprint(i) {
						t.Errorf("%s has the value %s, want %d", a.Key, a.Text(), i)
					}
				}
				if !slices.Equal(got, c.want) {
					t.Errorf("row %d: %s\nwant %s", row, strings.Join(got, " "), strings.Join(c.want, " "))
				}
			}
		})
	}
}
