package schemas

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas/kinds"
)

func TestCutBodies(t *testing.T) {
	topic := NewTopicOf(kinds.Audit, "trail")
	topic.BodyLimit = 200
	long := `"` + strings.Repeat("x", 300) + `"`
	sum := sha256.Sum256([]byte(long))
	exact, above := `"`+strings.Repeat("x", 198)+`"`, `"`+strings.Repeat("x", 199)+`"` // 200 and 201 bytes
	sumAbove := sha256.Sum256([]byte(above))
	omittedAbove := `{"omitted_bytes":201,"sha256":"` + hex.EncodeToString(sumAbove[:]) + `"}`
	mark := `{"omitted_bytes":302,"sha256":"` + hex.EncodeToString(sum[:]) + `"}`
	for name, c := range map[string]struct {
		have, want []Attr
		err        error
	}{
		"none":               {[]Attr{String("a", "b")}, []Attr{String("a", "b")}, nil},
		"empty":              {[]Attr{String("before", "")}, []Attr{String("before", "")}, nil},
		"short":              {[]Attr{String("before", "{}")}, []Attr{String("before", "{}"), Int64("before_bytes", 2)}, nil},
		"of the limit":       {[]Attr{String("after", exact)}, []Attr{String("after", exact), Int64("after_bytes", 200)}, nil},
		"a byte above it":    {[]Attr{String("after", above)}, []Attr{String("after", omittedAbove), Int64("after_bytes", 201)}, nil},
		"short and noted":    {[]Attr{String("after", "{}"), Int64("after_bytes", 9)}, []Attr{String("after", "{}"), Int64("after_bytes", 9)}, nil},
		"long":               {[]Attr{String("after", long), String("a", "b")}, []Attr{String("after", mark), String("a", "b"), Int64("after_bytes", 302)}, nil},
		"long and noted":     {[]Attr{Int64("after_bytes", 5), String("after", long)}, []Attr{String("after", mark), Int64("after_bytes", 302)}, nil},
		"cut before":         {[]Attr{String("after", mark), Int64("after_bytes", 302)}, []Attr{String("after", mark), Int64("after_bytes", 302)}, nil},
		"long and not JSON":  {[]Attr{String("after", long+"x")}, nil, ErrValue},
		"a number is a body": {[]Attr{Int64("after", 7)}, []Attr{Int64("after", 7)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(c.have)
			e := Event{Attrs: given}
			err := topic.CutBodies(&e)
			if !errors.Is(err, c.err) || err == nil && !slices.Equal(e.Attrs, c.want) {
				t.Errorf("%+v, %v; want %+v", e.Attrs, err, c.want)
			}
			if !slices.Equal(given, c.have) {
				t.Errorf("the caller's attributes became %+v", given)
			}
		})
	}
}

// Whatever the bodies are, the event fits its limits with two of them, and a second cut changes
// nothing.
func TestCutBodiesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topic := NewTopicOf(kinds.Audit, "trail")
		topic.BodyLimit = rapid.Uint64Range(minBodyLimit, MaxBodyLimit).Draw(t, "limit")
		e := Event{Type: kinds.TypeChange, Attrs: []Attr{String("request_id", "r"), String("scope", "s")}}
		sizes := map[string]int{}
		for _, b := range []string{"before", "after"} {
			n := rapid.IntRange(2, 100_000).Draw(t, b)
			sizes[b] = n
			e.Attrs = append(e.Attrs, String(b, `"`+strings.Repeat("y", n-2)+`"`))
		}
		if err := topic.CutBodies(&e); err != nil {
			t.Fatal(err)
		}
		if err := topic.Check(&e, 1, 1); err != nil {
			t.Fatal(err)
		}
		once := slices.Clone(e.Attrs)
		if err := topic.CutBodies(&e); err != nil || !slices.Equal(e.Attrs, once) {
			t.Fatalf("the second time: %+v, %v", e.Attrs, err)
		}
		for b, n := range sizes {
			o, omitted := ParseOmitted(e.attr(b).Text())
			if length, _ := e.attr(b + "_bytes").AsInt64(); length != int64(n) || omitted != (n > topic.bodyLimit()) || omitted && o.Bytes != int64(n) {
				t.Fatalf("%s of %d bytes: %d, %+v", b, n, length, o)
			}
		}
	})
}
