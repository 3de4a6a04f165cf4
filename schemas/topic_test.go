package schemas

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTopicValidate(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Topic)
		text   string
	}{
		"kind":            {func(t *Topic) { t.Kind = "metre" }, `"metre" is not a kind; the kinds are log, meter, metric, audit, document, timer`},
		"no lanes":        {func(t *Topic) { t.Lanes = -1 }, "lanes is -1"},
		"too many lanes":  {func(t *Topic) { t.Lanes = MaxLanes + 1 }, "lanes is 257"},
		"field name":      {func(t *Topic) { t.Fields = []Field{{Name: "Bad", Type: TypeString}} }, `field name "Bad"`},
		"field reserved":  {func(t *Topic) { t.Fields = []Field{{Name: "user_id", Type: TypeString}} }, "a column every topic has"},
		"field twice":     {func(t *Topic) { t.Fields = []Field{{Name: "a", Type: TypeString}, {Name: "a", Type: TypeBool}} }, "declared twice"},
		"field type":      {func(t *Topic) { t.Fields = []Field{{Name: "a", Type: "uuid"}} }, `type "uuid"`},
		"too many fields": {func(t *Topic) { t.Fields = make([]Field, MaxFields+1) }, "65 promoted fields"},
		"keep":            {func(t *Topic) { t.KeepDays = -1 }, "keep_days"},
	} {
		t.Run(name, func(t *testing.T) {
			topic := NewTopic("app")
			c.change(&topic)
			if err := topic.Validate(); !errors.Is(err, ErrTopic) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v, want %q", name, err, c.text)
			}
		})
	}
	topic := Topic{Name: "app"}
	if got, err := topic.Declared(); err != nil || got.Lanes != DefaultLanes || got.Version != 1 || got.Rotate.Rows != DefaultRotateRows {
		t.Errorf("declared by name alone: %+v, %v", got, err)
	}
}

// Frames of every version of a topic have that version's columns, whatever came
// later.
func TestEvolveKeepsOldColumns(t *testing.T) {
	one := NewTopic("app", Field{Name: "a", Type: TypeString})
	want := one
	want.Fields = []Field{{Name: "b", Type: TypeInt64}, {Name: "a", Type: TypeString}}
	two, err := one.Evolve(want)
	if err != nil {
		t.Fatal(err)
	}
	if two.Version != 2 || strings.Join(two.Columns(1), ",") != strings.Join(one.Columns(1), ",") {
		t.Errorf("version 1 of the grown topic has %v, had %v", two.Columns(1), one.Columns(1))
	}
	if got := two.Columns(2); got[len(got)-1] != "b" {
		t.Errorf("version 2 has %v", got)
	}
}

func TestValidateEvent(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano()
	long := strings.Repeat("x", MaxEventBytes)
	for name, c := range map[string]struct {
		e    Event
		ts   int64
		want error
	}{
		"good":                {Event{Message: "x"}, now, nil},
		"largest":             {Event{Message: long}, now, nil},
		"too large":           {Event{Message: long, Level: "i"}, now, ErrEventTooLarge},
		"too large by attrs":  {Event{Message: long[1:], Attrs: []Attr{String("k", "v")}}, now, ErrEventTooLarge},
		"time zero":           {Event{}, 0, ErrTimeZero},
		"negative":            {Event{}, -1, ErrTimeTooOld},
		"a day ahead":         {Event{}, now + int64(MaxFuture), nil},
		"more than a day":     {Event{}, now + int64(MaxFuture) + 1, ErrTimeTooFarAhead},
		"unnamed attribute":   {Event{Attrs: []Attr{String("", "v")}}, now, ErrAttrName},
		"too many attributes": {Event{Attrs: make([]Attr, MaxAttrs+1)}, now, ErrTooManyAttrs},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.e.Validate(c.ts, now)
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
			if err != nil && Reason(err) == "" {
				t.Errorf("%s: %v has no word", name, err)
			}
		})
	}
	if err := (&Event{Message: long + "x"}).Validate(now, now); err == nil || !strings.Contains(err.Error(), "65537") || !strings.Contains(err.Error(), "65536") {
		t.Errorf("the refusal must name both numbers: %v", err)
	}
}

func TestIDs(t *testing.T) {
	a, b := NewID(1_700_000_000_123_000_000), NewID(1_700_000_000_124_000_000)
	if a.String()[14] != '7' || a.String() >= b.String() {
		t.Errorf("%s, %s: want version 7, in the order of time", a, b)
	}
	if back, err := ParseID(a.String()); err != nil || back != a {
		t.Errorf("%s reads back as %s, %v", a, back, err)
	}
	one, again := DerivedID(5, 1, 2), DerivedID(5, 1, 2)
	if one != again || one == DerivedID(5, 1, 3) || one == DerivedID(5, 2, 2) {
		t.Error("derived ids must depend on their input and nothing else")
	}
	for _, s := range []string{"", "x", "0190f3a0-0000-7000-8000-00000000000", "0190f3a0x0000-7000-8000-000000000000", "g190f3a0-0000-7000-8000-000000000000"} {
		if _, err := ParseID(s); !errors.Is(err, ErrID) {
			t.Errorf("%q: %v, want it refused", s, err)
		}
	}
}
