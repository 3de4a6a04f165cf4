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
		} else if got := string(d.appendTo(nil)); ok && got != want {
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
		got := string(decodeDecimal(d.encode(nil)).appendTo(nil))
		want, _ := new(big.Rat).SetString(text)
		have, _ := new(big.Rat).SetString(got)
		if want.Cmp(have) != 0 || strings.Contains(got, ".") && strings.HasSuffix(got, "0") {
			t.Fatalf("%s came back as %s", text, got)
		}
	})
}

func TestJSONFieldsStayWhole(t *testing.T) {
	t.Parallel()
	topic := NewTopic("trail", Field{Name: "before", Type: TypeJSON}, Field{Name: "later", Type: TypeJSON, From: "change.after"})
	for line, want := range map[string]map[string]string{
		`{"before":{"name":"x","in":{"a": 1}},"k":{"l":2}}`: {"before": `{"name":"x","in":{"a":1}}`, "k.l": "2"},
		`{"change":{"after":{"a":[1, 2]},"by":"u"}}`:        {"later": `{"a":[1,2]}`, "change.by": "u"},
		`{"before":"a text"}`:                               {"before": "a text"}, // no JSON: an attribute
		`{"before":null}`:                                   {},
		`{"before":7}`:                                      {"before": "7"},
	} {
		keys := EventKeys{Topic: &topic}
		e, err := keys.ParseJSON([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		b := NewFrameBuilder(&topic)
		b.Append(&e, atNoon.UnixNano(), NewID(1))
		_, payload := b.Encode()
		var r FrameReader
		if err := r.Open(payload, &topic, 1); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, a := range r.Event(0).Attrs {
			got[a.Key] = a.Text()
		}
		if len(got) != len(want) {
			t.Errorf("%s gives %v, want %v", line, got, want)
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s gives %v, want %v", line, got, want)
			}
		}
		if column := r.Text(r.ColumnIndex("before"), 0); strings.Contains(line, "a text") && len(column) > 0 {
			t.Errorf("%s is in the column: %s", line, column)
		}
	}
}

func TestMeterAliases(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ line, want string }{
		"CloudEvents": {`{"specversion":"1.0","type":"bytes","source":"//gw/1","id":"a-1","subject":"s1","time":"2026-11-20T12:00:00Z","data":{"value":7,"user_id":"cust"}}`,
			"bytes cust s1 //gw/1 a-1 7"},
		"CloudEvents with a UUID": {`{"specversion":"1.0","type":"bytes","source":"gw","id":"0193a1b2-0000-7000-8000-000000000001","subject":"s1","data":{"delta":-3}}`,
			"bytes  s1 gw 0193a1b2-0000-7000-8000-000000000001 -3"},
		"Stripe":             {`{"event_name":"tokens","timestamp":1763640000,"identifier":"id-9","payload":{"stripe_customer_id":"cus_1","value":"25"}}`, "tokens cus_1 cus_1 id-9 25"},
		"own names win":      {`{"specversion":"1.0","source":"gw","id":"x","subject":"other","space":"s","cause":"c","delta":1}`, "  s c 1"},
		"neither of the two": {`{"source":"gw","id":"x","space":"s","cause":"c","delta":1}`, "  s c 1"},
	} {
		t.Run(name, func(t *testing.T) {
			keys := EventKeys{Topic: &meterTopic}
			e, err := keys.ParseJSON([]byte(c.line))
			if err == nil {
				err = meterTopic.Check(&e, atNoon.UnixNano(), atNoon.UnixNano())
			}
			if err != nil {
				t.Fatal(err)
			}
			texts := []string{e.Type, e.UserID}
			for _, column := range []string{"space", "cause", "delta"} {
				texts = append(texts, e.attr(column).Text())
			}
			if got := strings.Join(texts, " "); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
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
	once.OnceBy = []string{"request"}
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
		lane := LaneOf(&topic, &e, "p")
		e.Attrs = rapid.Permutation(e.Attrs).Draw(t, "order")
		e.Attrs = append(e.Attrs, Int64("delta", rapid.Int64().Draw(t, "delta"))) // a column is not a label
		if got := LaneOf(&topic, &e, "p"); got != lane {
			t.Fatalf("lane %d, and %d in another order", lane, got)
		}
	})
	lanes := map[int]bool{}
	for _, v := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		lanes[LaneOf(&topic, &Event{Attrs: []Attr{String("host", v)}}, "p")] = true
	}
	if len(lanes) < 4 {
		t.Errorf("eight hosts go to %d lanes", len(lanes))
	}
}
