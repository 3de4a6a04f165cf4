package query

import "testing"

func TestUnknownNotice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names []string
		s     Sample
		want  string
	}{
		{nil, Sample{Read: 5}, ""},
		{[]string{"x"}, Sample{}, ""}, // no event, so that nothing is known of the name
		{[]string{"x"}, Sample{Read: 5}, "none of the 5 events in this range has attributes.x; `almanac fields app` lists what they have"},
		{[]string{"x", "a b"}, Sample{Read: 5, Sampled: true}, "none of the newest 5 events in this range has attributes.x or attributes['a b']; `almanac fields app` lists what they have"},
	} {
		if got := unknownNotice("app", c.names, &c.s); got != c.want {
			t.Errorf("%q of %+v: %q, want %q", c.names, c.s, got, c.want)
		}
	}
	text := "one"
	var heard string
	noticed(&text, "two", func(s string) { heard = s })
	if noticed(&text, "", nil); text != "one. two" || heard != "two" {
		t.Errorf("%q, and %q was heard", text, heard)
	}
}
