package frame

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

var (
	meterTopic = schemas.NewTopicOf(kinds.Meter, "usage", schemas.Field{Name: "region", Type: schemas.TypeLowCardinality})
	atNoon     = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
)

func TestMeterRules(t *testing.T) {
	t.Parallel()
	const head = `{"type":"bytes","provider":"p","space":"s1",`
	for name, c := range map[string]struct{ line, want string }{
		"a diff":             {head + `"cause":"c","delta":100,"user_id":"cust-1","k":"v"}`, ""},
		"no provider":        {`{"space":"s1","cause":"c","delta":100}`, ""},
		"negative":           {head + `"cause":"c","delta":-30}`, ""},
		"zero":               {head + `"cause":"c","delta":0}`, ""},
		"as a text":          {head + `"cause":"c","delta":"30"}`, ""},
		"2^53":               {head + `"cause":"c","delta":9007199254740992}`, ""},
		"-2^53":              {head + `"cause":"c","delta":-9007199254740992}`, ""},
		"2^53+1":             {head + `"cause":"c","delta":9007199254740993}`, "bad value: delta is 9007199254740993, it must be -9007199254740992 to 9007199254740992"},
		"-2^53-1 as a text":  {head + `"cause":"c","delta":"-9007199254740993"}`, "bad value: delta is -9007199254740993, it must be -9007199254740992 to 9007199254740992"},
		"2^63":               {head + `"cause":"c","delta":9223372036854775808}`, `bad value: delta is "9223372036854775808", it must be a whole number`},
		"1.5":                {head + `"cause":"c","delta":1.5}`, `bad value: delta is "1.5", it must be a whole number`},
		"a word":             {head + `"cause":"c","delta":"much"}`, `bad value: delta is "much", it must be a whole number`},
		"true":               {head + `"cause":"c","delta":true}`, `bad value: delta is "true", it must be a whole number`},
		"an object":          {head + `"cause":"c","delta":{"by":3}}`, "bad value: delta is missing"},
		"delta missing":      {head + `"cause":"c"}`, "bad value: delta is missing"},
		"delta null":         {head + `"cause":"c","delta":null}`, "bad value: delta is missing"},
		"cause missing":      {head + `"delta":100}`, "bad value: cause is missing"},
		"cause empty":        {head + `"cause":"","delta":100}`, "bad value: cause is empty"},
		"space missing":      {`{"cause":"c","delta":100}`, "bad value: space is missing"},
		"delta twice":        {head + `"cause":"c","delta":1,"delta":2}`, "bad value: delta is given twice"},
		"delta nested again": {head + `"cause":"c","delta":1,"attributes":{"delta":2}}`, "bad value: delta is given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			keys := rawjson.Keys{Topic: &meterTopic}
			e, err := keys.Parse([]byte(c.line))
			if err != nil {
				t.Fatal(err)
			}
			err = meterTopic.Check(&e, atNoon.UnixNano(), atNoon.UnixNano())
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "" && (!errors.Is(err, schemas.ErrValue) || err.Error() != c.want || schemas.Reason(err) != "bad-value"):
				t.Fatalf("%v (%s), want %s", err, schemas.Reason(err), c.want)
			case c.want != "":
				return
			}
			if err := checkFrame(t, &meterTopic, &meterTopic, e); err != nil {
				t.Errorf("its frame is refused: %v", err)
			}
		})
	}
	// The kind's own bound on times, for events and for frames.
	e := schemas.Event{Attrs: []schemas.Attr{schemas.String("space", "s"), schemas.String("cause", "c"), schemas.Int64("delta", 1)}}
	for ahead, ok := range map[time.Duration]bool{4 * time.Minute: true, 6 * time.Minute: false} {
		ts := atNoon.Add(ahead).UnixNano()
		err := meterTopic.Check(&e, ts, atNoon.UnixNano())
		frame := meterTopic.CheckTimes(ts, ts, schemas.MonthOf(ts), atNoon.UnixNano())
		if errors.Is(err, schemas.ErrTimeTooFarAhead) == ok || errors.Is(frame, schemas.ErrTimeTooFarAhead) == ok {
			t.Errorf("%s ahead: %v, and of a frame %v", ahead, err, frame)
		}
	}
}

// checkFrame makes a frame of events as a topic would, and has it checked as one of another.
func checkFrame(t failer, made, as *schemas.Topic, events ...schemas.Event) error {
	b := NewBuilder(made)
	for i := range events {
		b.Append(&events[i], atNoon.UnixNano()+int64(i), schemas.NewID(atNoon.UnixNano()))
	}
	f, payload := b.Encode()
	var r Reader
	if err := r.Open(payload, as, 1); err != nil {
		t.Fatal(err)
	}
	return r.Check(f, schemas.MonthOf(atNoon.UnixNano()), 0, atNoon.UnixNano())
}

type failer interface{ Fatal(...any) }

// A producer that knows nothing of rules makes frames with every column; each is refused
// for what is wrong with it.
func TestMeterFrames(t *testing.T) {
	t.Parallel()
	plain := schemas.NewTopic("usage", meterTopic.Fields...) // the same columns, and no rules
	diff := func(change func(*schemas.Event)) schemas.Event {
		e := schemas.Event{Type: "bytes", Attrs: []schemas.Attr{schemas.String("provider", "p"), schemas.String("space", "s"), schemas.String("cause", "c"), schemas.Int64("delta", 1)}}
		change(&e)
		return e
	}
	good := diff(func(*schemas.Event) {})
	for name, c := range map[string]struct {
		event schemas.Event
		want  error
		text  string
	}{
		"good":            {good, nil, ""},
		"no cause":        {diff(func(e *schemas.Event) { e.Attrs[2] = schemas.String("k", "v") }), schemas.ErrValue, "event 2: bad value: cause is empty"},
		"2^53+1":          {diff(func(e *schemas.Event) { e.Attrs[3] = schemas.Int64("delta", 1<<53+1) }), schemas.ErrValue, "event 2: bad value: delta is 9007199254740993"},
		"1.5":             {diff(func(e *schemas.Event) { e.Attrs[3] = schemas.Float64("delta", 1.5) }), schemas.ErrValue, "delta is an attribute and not in its column"},
		"labels unsorted": {diff(func(e *schemas.Event) { e.Attrs = append(e.Attrs, schemas.String("b", "1"), schemas.String("a", "2")) }), schemas.ErrLabels, `event 2 has the attribute "b" before "a"`},
		"a label twice":   {diff(func(e *schemas.Event) { e.Attrs = append(e.Attrs, schemas.String("a", "1"), schemas.String("a", "2")) }), schemas.ErrLabels, `"a" before "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			by := &plain
			if name == "a label twice" {
				by = &meterTopic // another's builder gives it a number
			}
			err := checkFrame(t, by, &meterTopic, good, c.event, good)
			if !errors.Is(err, c.want) || c.want != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v: %s", err, c.want, c.text)
			}
		})
	}
}

// Whatever the event: when the topic takes it, the router takes its frame, every label
// comes back once and sorted, and every field of the kind as it was given.
func TestRulesOfEventsAndFramesAgree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.OneOf(
			rapid.Map(rapid.Int64Range(-1<<54, 1<<54), func(n int64) schemas.Attr { return schemas.Int64("", n) }),
			rapid.Map(rapid.SampledFrom([]float64{0, 1, 1.5, -2, 1 << 53, 1e300, math.NaN(), math.Inf(1)}), func(v float64) schemas.Attr { return schemas.Float64("", v) }),
			rapid.Map(rapid.SampledFrom([]string{"", "7", "1.5", "c-1", "\xff", "a\x00b"}), func(s string) schemas.Attr { return schemas.String("", s) }),
			rapid.Just(schemas.Bool("", true)),
		)
		e := schemas.Event{Type: rapid.SampledFrom([]string{"", "bytes"}).Draw(t, "type")}
		for _, key := range rapid.SliceOfN(rapid.SampledFrom([]string{"space", "cause", "delta", "provider", "region", "z", "a", "almanac_invalid_utf8", "b\xff"}), 0, 9).Draw(t, "keys") {
			a := values.Draw(t, key)
			a.Key = key
			e.Attrs = append(e.Attrs, a)
		}
		given := slices.Clone(e.Attrs)
		err := meterTopic.Check(&e, atNoon.UnixNano(), atNoon.UnixNano())
		if err != nil {
			if schemas.Reason(err) == "" {
				t.Fatalf("no reason for %v", err)
			}
			return
		}
		if err := checkFrame(t, &meterTopic, &meterTopic, e); err != nil {
			t.Fatalf("the frame of an event that was taken: %v", err)
		}
		if !slices.Equal(given, e.Attrs) {
			t.Fatal("the event was changed")
		}
		b := NewBuilder(&meterTopic)
		b.Append(&e, atNoon.UnixNano(), schemas.NewID(1))
		_, payload := b.Encode()
		var r Reader
		if err := r.Open(payload, &meterTopic, 1); err != nil {
			t.Fatal(err)
		}
		got := r.Event(0)
		for _, a := range e.Attrs {
			want := a.Text()
			if a.Key == "delta" {
				n, _ := a.AsInt64()
				want = fmt.Sprint(n)
			}
			i := slices.IndexFunc(got.Attrs, func(g schemas.Attr) bool { return g.Key == a.Key })
			if i < 0 && (want == "" || want == "0") {
				continue // a field at its type's zero
			}
			if i < 0 || got.Attrs[i].Text() != want {
				t.Fatalf("%s is %q, and came back as %v", a.Key, want, got.Attrs)
			}
		}
	})
}
