package frame

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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
