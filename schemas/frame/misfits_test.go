package frame

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/schemas"
)

// A value that is not of the column's type stays an attribute, and
// the column is at its default.
func TestWhatDoesNotFitStaysAnAttribute(t *testing.T) {
	topic := schemas.NewTopic("app", schemas.Field{Name: "i", Type: schemas.TypeInt64}, schemas.Field{Name: "f", Type: schemas.TypeFloat64}, schemas.Field{Name: "b", Type: schemas.TypeBool}, schemas.Field{Name: "t", Type: schemas.TypeTimestamp})
	at := time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC) // 1700000000
	for _, c := range []struct{ in, want schemas.Attr }{
		{schemas.String("i", "9223372036854775808"), schemas.String("i", "9223372036854775808")},
		{schemas.String("i", "-9223372036854775809"), schemas.String("i", "-9223372036854775809")},
		{schemas.String("i", "9223372036854775807"), schemas.Int64("i", math.MaxInt64)},
		{schemas.String("i", "12x"), schemas.String("i", "12x")},
		{schemas.Float64("i", 1e300), schemas.String("i", "1e+300")},
		{schemas.String("f", "NaN"), schemas.String("f", "NaN")},
		{schemas.String("f", "Inf"), schemas.String("f", "Inf")},
		{schemas.String("f", "-infinity"), schemas.String("f", "-infinity")},
		{schemas.String("f", "0x1p-2"), schemas.String("f", "0x1p-2")},
		{schemas.String("f", "1e999"), schemas.String("f", "1e999")},
		{schemas.Float64("f", math.Inf(-1)), schemas.Float64("f", math.Inf(-1))}, // a program says what it means
		{schemas.String("f", "-1.5e3"), schemas.Float64("f", -1500)},
		{schemas.String("b", "maybe"), schemas.String("b", "maybe")},
		{schemas.String("t", "2023-11-14T22:13:20+0000"), schemas.Time("t", at)},
		{schemas.String("t", "2023-11-14T22:13:20"), schemas.Time("t", at)},
		{schemas.String("t", "1700000000"), schemas.Time("t", at)},
		{schemas.Int64("t", 1700000000123), schemas.Time("t", at.Add(123*time.Millisecond))},
		{schemas.Float64("t", 1700000000.5), schemas.Time("t", at.Add(500*time.Millisecond))},
		{schemas.String("t", "9999-12-31T00:00:00Z"), schemas.String("t", "9999-12-31T00:00:00Z")},
		{schemas.Int64("t", 9e10), schemas.Int64("t", 9e10)},
	} {
		e := schemas.Event{Attrs: []schemas.Attr{c.in}}
		r := framed(t, &topic, &e)
		want := c.want
		if c.in.Kind() == schemas.KindInt64 && want == c.in { // attributes are texts
			want = schemas.String(want.Key, want.Text())
		}
		if diff := cmp.Diff([]schemas.Attr{want}, r.Event(0).Attrs, cmp.AllowUnexported(schemas.Attr{})); diff != "" {
			t.Errorf("%s %q: %s", c.in.Key, c.in.Text(), diff)
		}
	}
}
