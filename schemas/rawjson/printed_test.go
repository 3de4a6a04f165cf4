package rawjson

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// A line that says where an event is stored, as Almanac prints it, is the event without that. A line that only has some of these keys,
// or other values under them, keeps them all.
func TestPrintedLines(t *testing.T) {
	t.Parallel()
	const line = `{"ts":"2026-11-26T12:00:00.000000000Z","id":"01931111-1111-7111-8111-111111111111","message":"m","attributes":{"a":"1","month":"may"},"month":202611,"shard":"00154ce21d137a68","pos":1}`
	whole := []string{"a=1", "month=may", "month#2=202611", "shard=00154ce21d137a68", "pos=1"}
	for name, c := range map[string]struct {
		from, to string
		want     []string
	}{
		"as it is printed":      {"", "", []string{"a=1", "month=may"}},
		"on its way":            {`"shard":"00154ce21d137a68","pos":1`, `"shard":"0000000000000000","pos":0`, []string{"a=1", "month=may"}},
		"without attributes":    {`{"a":"1","month":"may"}`, `{}`, nil},
		"of another month":      {`"ts":"2026-11`, `"ts":"2026-10`, whole},
		"without an id":         {`"id":"01931111-1111-7111-8111-111111111111",`, ``, whole},
		"without a time":        {`"ts":"2026-11-26T12:00:00.000000000Z",`, ``, whole},
		"a month as text":       {`202611`, `"202611"`, whole},
		"a shard of other form": {`"00154ce21d137a68"`, `"00154CE21D137A68"`, []string{"a=1", "month=may", "month#2=202611", "shard=00154CE21D137A68", "pos=1"}},
		"a shard as a number":   {`"00154ce21d137a68"`, `1154321137168`, []string{"a=1", "month=may", "month#2=202611", "shard=1154321137168", "pos=1"}},
		"a position below zero": {`"pos":1`, `"pos":-1`, []string{"a=1", "month=may", "month#2=202611", "shard=00154ce21d137a68", "pos=-1"}},
		"no position":           {`,"pos":1`, ``, whole[:4]},
		"another month too":     {`"pos":1`, `"pos":1,"month":202612`, append(whole[:len(whole):len(whole)], "month#3=202612")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := Parse([]byte(strings.Replace(line, c.from, c.to, 1)))
			if err != nil {
				t.Fatal(err)
			}
			if got := textsOf(e.Attrs); !reflect.DeepEqual(got, c.want) || e.Message != "m" {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
}

// What is printed of an event of a frame is read as that event.
func TestPrintedIsReadAgain(t *testing.T) {
	topic, err := schemas.Topic{Name: "usage", Kind: kinds.Meter}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SampledFrom([]string{"", "x", "größe", `a "quoted" \ one`, "line\nend", "202611"})
		key := rapid.SampledFrom([]string{"k", "a.b", "month", "shard", "pos", "attributes", "x y"})
		e := schemas.Event{Type: text.Draw(rt, "type"), UserID: text.Draw(rt, "user"), Message: text.Draw(rt, "message"), Service: text.Draw(rt, "service"), Attrs: []schemas.Attr{
			schemas.String("space", text.Draw(rt, "space")), schemas.Int64("delta", rapid.Int64Range(-1<<53, 1<<53).Draw(rt, "delta")),
		}}
		for _, k := range rapid.SliceOfNDistinct(key, 0, 4, func(k string) string { return k }).Draw(rt, "keys") {
			e.Attrs = append(e.Attrs, schemas.String(k, text.Draw(rt, k)))
		}
		ts := rapid.Int64Range(1, 1<<61).Draw(rt, "ts")
		b := frame.NewBuilder(&topic)
		b.Append(&e, ts, schemas.DerivedID(ts, 1, 2))
		f, payload := b.Encode()
		var r, again frame.Reader
		if err := r.Open(payload, &topic, f.Schema); err != nil {
			rt.Fatal(err)
		}
		w := frame.NewLineWriter(&topic)
		w.Open(&r, f.Schema, schemas.MonthOf(ts), 0x00154ce21d137a68)
		line := w.Append(nil, 0, 7)
		got, err := Keys{Topic: &topic}.Parse(line)
		if err != nil {
			rt.Fatal(err)
		}
		second := frame.NewBuilder(&topic)
		second.Append(&got, got.Time.UnixNano(), got.ID)
		_, payload = second.Encode()
		if err := again.Open(payload, &topic, f.Schema); err != nil {
			rt.Fatal(err)
		}
		if was, is := r.Event(0), again.Event(0); !reflect.DeepEqual(was, is) {
			rt.Fatalf("%s\nis read as %+v\nit was    %+v", line, is, was)
		}
	})
}
