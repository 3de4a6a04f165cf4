package schemas

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Issue 13, line 7: a value that is not of the column's type stays an attribute, and
// the column is at its default.
func TestLine7WhatDoesNotFitStaysAnAttribute(t *testing.T) {
	topic := NewTopic("app", Field{Name: "i", Type: TypeInt64}, Field{Name: "f", Type: TypeFloat64}, Field{Name: "b", Type: TypeBool}, Field{Name: "t", Type: TypeTimestamp})
	at := time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC) // 1700000000
	for _, c := range []struct{ in, want Attr }{
		{String("i", "9223372036854775808"), String("i", "9223372036854775808")},
		{String("i", "-9223372036854775809"), String("i", "-9223372036854775809")},
		{String("i", "9223372036854775807"), Int64("i", math.MaxInt64)},
		{String("i", "12x"), String("i", "12x")},
		{Float64("i", 1e300), String("i", "1e+300")},
		{String("f", "NaN"), String("f", "NaN")},
		{String("f", "Inf"), String("f", "Inf")},
		{String("f", "-infinity"), String("f", "-infinity")},
		{String("f", "0x1p-2"), String("f", "0x1p-2")},
		{String("f", "1e999"), String("f", "1e999")},
		{Float64("f", math.Inf(-1)), Float64("f", math.Inf(-1))}, // a program says what it means
		{String("f", "-1.5e3"), Float64("f", -1500)},
		{String("b", "maybe"), String("b", "maybe")},
		{String("t", "2023-11-14T22:13:20+0000"), Time("t", at)},
		{String("t", "2023-11-14T22:13:20"), Time("t", at)},
		{String("t", "1700000000"), Time("t", at)},
		{Int64("t", 1700000000123), Time("t", at.Add(123*time.Millisecond))},
		{Float64("t", 1700000000.5), Time("t", at.Add(500*time.Millisecond))},
		{String("t", "9999-12-31T00:00:00Z"), String("t", "9999-12-31T00:00:00Z")},
		{Int64("t", 9e10), Int64("t", 9e10)},
	} {
		e := Event{Attrs: []Attr{c.in}}
		b := NewFrameBuilder(&topic)
		b.Append(&e, 1, NewID(1))
		f, payload := b.Encode()
		var r FrameReader
		if err := r.Open(payload, &topic, f.Schema); err != nil {
			t.Fatal(err)
		}
		want := c.want
		if c.in.kind == KindInt64 && want == c.in { // attributes are texts
			want = String(want.Key, want.Text())
		}
		if diff := cmp.Diff([]Attr{want}, r.Event(0).Attrs, cmp.AllowUnexported(Attr{})); diff != "" {
			t.Errorf("%s %q: %s", c.in.Key, c.in.Text(), diff)
		}
	}
}
