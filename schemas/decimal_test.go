package schemas

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDecimals(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "1": "1", "+1.50": "1.5", "-0.000000000000000001": "-0.000000000000000001", ".5": "0.5", "5.": "5",
		"13438.712904456820057": "13438.712904456820057", "1e3": "1000", "1.5E-2": "0.015", "100e-20": "0.000000000000000001",
		"99999999999999999999.999999999999999999": "99999999999999999999.999999999999999999", "1000000000000000000000e-1": "",
		"00012": "12", "1e20": "", "1e19": "10000000000000000000", "0.0000000000000000001": "", "0e999": "0", "1e999999999999": "",
		"": "", ".": "", "-": "", "1,5": "", "NaN": "", "Inf": "", "0x10": "", "1_000": "", "1e": "", "--1": "", "1.2.3": "",
	} {
		d, ok := parseDecimal(text)
		if ok != (want != "") {
			t.Errorf("%q: taken %v, want %q", text, ok, want)
		} else if got := string(d.AppendText(nil)); ok && got != want {
			t.Errorf("%q gives %s, want %s", text, got, want)
		}
	}
}

// Every number of 38 digits comes back as it was written, also by way of its 16 bytes.
func TestDecimalsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?[0-9]{1,20}(\.[0-9]{1,18})?`).Draw(t, "number")
		d, ok := parseDecimal(text)
		if !ok {
			t.Fatalf("%q is refused", text)
		}
		got := string(DecodeDecimal(d.AppendWire(nil)).AppendText(nil))
		want, _ := new(big.Rat).SetString(text)
		have, _ := new(big.Rat).SetString(got)
		if want.Cmp(have) != 0 || strings.Contains(got, ".") && strings.HasSuffix(got, "0") {
			t.Fatalf("%s came back as %s", text, got)
		}
	})
}

// Fields that tell events apart, or that the kind requires, are neither cleared nor
// dropped; hashing them is possible.
func TestFieldsThatStay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Topic)
		want   string
	}{
		"anonymise the cause":    {func(t *Topic) { t.Anonymise = Anonymise{AfterDays: 1, Fields: []string{"cause"}} }, `clear the column "cause"`},
		"anonymise a sort key":   {func(t *Topic) { t.Anonymise = Anonymise{AfterDays: 1, Fields: []string{"type"}} }, `clear the column "type"`},
		"anonymise the customer": {func(t *Topic) { t.Anonymise = Anonymise{AfterDays: 1, Fields: []string{"user_id", "delta"}} }, ""},
		"inside the space":       {func(t *Topic) { t.Anonymise = Anonymise{AfterDays: 1, Fields: []string{"space.owner"}} }, `clear the column "space"`},
		"drop the delta":         {func(t *Topic) { t.PII = []Private{{Field: "delta", Rule: PrivacyDrop}} }, "must have the column delta"},
		"truncate the cause":     {func(t *Topic) { t.PII = []Private{{Field: "cause", Rule: PrivacyTruncateIP}} }, "must have the column cause"},
		"hash the space":         {func(t *Topic) { t.PII = []Private{{Field: "space", Rule: PrivacyHash}} }, ""},
		"drop the customer":      {func(t *Topic) { t.PII = []Private{{Field: "user_id", Rule: PrivacyDrop}} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			topic := NewTopicOf("meter", "usage")
			c.change(&topic)
			err := topic.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	once := NewTopic("app", Field{Name: "request", Type: TypeString})
	once.OnceBy, once.LaneBy = []string{"request"}, []string{"request"}
	once.Anonymise = Anonymise{AfterDays: 1, Fields: []string{"request"}}
	if err := once.Validate(); err == nil || !strings.Contains(err.Error(), `clear the column "request"`) {
		t.Errorf("a column of once_by: %v", err)
	}
}

// The lane of labels is the same in whatever order they come, and another for others.
func TestLaneByAttributes(t *testing.T) {
	t.Parallel()
	topic := NewTopicOf("meter", "usage")
	topic.Lanes, topic.LaneBy = MaxLanes, []string{ColType, ColAttributes}
	rapid.Check(t, func(t *rapid.T) {
		var e Event
		for _, key := range rapid.SliceOfNDistinct(rapid.StringN(1, 8, -1), 1, 6, rapid.ID[string]).Draw(t, "keys") {
			e.Attrs = append(e.Attrs, String(key, rapid.String().Draw(t, "value")))
		}
		lane := LaneOf(&topic, &e, 1, "p")
		e.Attrs = rapid.Permutation(e.Attrs).Draw(t, "order")
		e.Attrs = append(e.Attrs, Int64("delta", rapid.Int64().Draw(t, "delta"))) // a column is not a label
		if got := LaneOf(&topic, &e, 1, "p"); got != lane {
			t.Fatalf("lane %d, and %d in another order", lane, got)
		}
	})
	lanes := map[int]bool{}
	for _, v := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		lanes[LaneOf(&topic, &Event{Attrs: []Attr{String("host", v)}}, 1, "p")] = true
	}
	if len(lanes) < 4 {
		t.Errorf("eight hosts go to %d lanes", len(lanes))
	}
}
