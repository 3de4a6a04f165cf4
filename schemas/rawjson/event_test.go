package rawjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

// textsOf are an event's attributes as name=text, in order.
func textsOf(attrs []schemas.Attr) []string {
	var out []string
	for i := range attrs {
		out = append(out, attrs[i].Key+"="+attrs[i].Text())
	}
	return out
}

func TestParseFields(t *testing.T) {
	line := `{"ts":"2026-11-05T10:00:00.123456789+01:00","id":"0193a1b2-0000-7000-8000-000000000001","level":"warn",
		"service":"api","type":"login","user_id":"u-7","trace_id":"aa","span_id":"bb","message":"hi"}`
	e, err := Parse([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := schemas.ParseID("0193a1b2-0000-7000-8000-000000000001")
	want := schemas.Event{
		Time: time.Date(2026, 11, 5, 9, 0, 0, 123456789, time.UTC), ID: id, Level: "warn", Service: "api",
		Type: "login", UserID: "u-7", TraceID: "aa", SpanID: "bb", Message: "hi",
	}
	if !reflect.DeepEqual(e, want) {
		t.Errorf("got %+v\nwant %+v", e, want)
	}
}

func TestParseAttributes(t *testing.T) {
	for _, c := range []struct {
		line string
		want []string
	}{
		{`{}`, nil},
		{`{"a":{"b":{"c":"x"}},"attributes":{"k":"v","n":{"m":1}}}`, []string{"a.b.c=x", "k=v", "n.m=1"}},
		{`{"attributes":[1]}`, []string{"attributes=[1]"}},
		{`{"a":[ 1, {"b" : null} ],"o":{},"e":[]}`, []string{`a=[1,{"b":null}]`, "o={}", "e=[]"}},
		{`{"a":null,"b":{"c":null}}`, nil},
		{`{"t":true,"f":false}`, []string{"t=true", "f=false"}},
		{`{"a":1,"a":2,"a":3,"a#2":4}`, []string{"a=1", "a#2=2", "a#3=3", "a#2#2=4"}},
		{`{"a.b":1,"a":{"b":2}}`, []string{"a.b=1", "a.b#2=2"}},
		{`{"level":"a","level":"b","msg":"m","message":"n"}`, []string{"level=b", "message=n"}},
		{`{"time":5,"ts":6}`, []string{"ts=6"}},
		{`{"id":"2489395767"}`, []string{"id=2489395767"}},
		{`{"x":{"user_id":"u","ts":"no time"}}`, []string{"x.user_id=u", "x.ts=no time"}},
		{`{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":1}}}}}}}}`, []string{"a.b.c.d.e.f.g.h=1"}},
		{`{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{"i": 1}}}}}}}}}`, []string{`a.b.c.d.e.f.g.h={"i":1}`}},
		{`{"":1,"b":2}`, []string{"b=2", `almanac_rest={"":1}`}},
		{`{"":1,"almanac_rest":2}`, []string{"almanac_rest=2", `almanac_rest#={"":1}`}},
		{`{"a\n\"":1}`, []string{"a\n\"=1"}},
	} {
		e, err := Parse([]byte(c.line))
		if err != nil {
			t.Errorf("%s: %v", c.line, err)
			continue
		}
		if got := textsOf(e.Attrs); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %q\nwant %q", c.line, got, c.want)
		}
	}
}

func TestParseNotStrings(t *testing.T) {
	e, err := Parse([]byte(`{"level":30,"message":{"a" : [1]},"user_id":17,"service":true,"type":null}`))
	if err != nil {
		t.Fatal(err)
	}
	if e.Level != "info" || e.Message != `{"a":[1]}` || e.UserID != "17" || e.Service != "true" || e.Type != "" || len(e.Attrs) != 1 {
		t.Errorf("got %+v", e)
	}
}

func TestParseNumbers(t *testing.T) {
	for _, c := range []struct {
		in   string
		kind schemas.AttrKind
		text string
	}{
		{"0", schemas.KindInt64, "0"},
		{"-9223372036854775808", schemas.KindInt64, "-9223372036854775808"},
		{"9223372036854775808", schemas.KindString, "9223372036854775808"},
		{"1.5", schemas.KindFloat64, "1.5"},
		{"-0", schemas.KindFloat64, "-0"},
		{"1.0", schemas.KindFloat64, "1"},
		{"100.00", schemas.KindFloat64, "100"},
		{"41.361999999999995", schemas.KindFloat64, "41.361999999999995"},
		{"1e+21", schemas.KindFloat64, "1e+21"},
		{"1.50", schemas.KindString, "1.50"},
		{"1e3", schemas.KindString, "1e3"},
		{"1000000.5", schemas.KindString, "1000000.5"},
		{"9007199254740993.0", schemas.KindString, "9007199254740993.0"},
		{"3.14159265358979323846", schemas.KindString, "3.14159265358979323846"},
		{"1e999999999", schemas.KindString, "1e999999999"},
		{"1e-999999999", schemas.KindString, "1e-999999999"},
	} {
		e, err := Parse([]byte(`{"n":` + c.in + `}`))
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if a := e.Attrs[0]; a.Kind() != c.kind || a.Text() != c.text {
			t.Errorf("%s: got kind %d %q, want kind %d %q", c.in, a.Kind(), a.Text(), c.kind, c.text)
		}
	}
}

func TestParseTimes(t *testing.T) {
	at := time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC) // 1700000000
	for _, c := range []struct {
		in   string
		want time.Time
	}{
		{`"2023-11-14T22:13:20Z"`, at},
		{`1700000000`, at},
		{`1700000000.123`, at.Add(123 * time.Millisecond)},
		{`1700000000.1234567891`, at.Add(123456789)},
		{`1.7e9`, at},
		{`1.7000000005e9`, at.Add(500 * time.Millisecond)},
		{`1700000000123`, at.Add(123 * time.Millisecond)},
		{`1700000000123.5`, at.Add(123500 * time.Microsecond)},
		{`1700000000123456`, at.Add(123456 * time.Microsecond)},
		{`1700000000123456789`, at.Add(123456789)},
		{`99999999999`, time.Time{}}, // the year 5138
		{`100000000000`, time.Unix(100000000, 0).UTC()},
		{`0`, time.Unix(0, 0).UTC()},
		{`0.0`, time.Unix(0, 0).UTC()},
		{`-1.5`, time.Unix(-2, 5e8).UTC()},
	} {
		for _, key := range []string{"ts", "time", "timestamp", "@timestamp"} {
			e, err := Parse([]byte(`{"` + key + `":` + c.in + `}`))
			if c.want.IsZero() {
				if !errors.Is(err, schemas.ErrTimeTooFarAhead) {
					t.Errorf("%s: %v", c.in, err)
				}
				continue
			}
			if err != nil || !e.Time.Equal(c.want) || e.Time.IsZero() {
				t.Errorf("%s %s: got %v %v, want %v", key, c.in, e.Time, err, c.want)
			}
		}
	}
	e, err := Parse([]byte(`{"ts":0}`))
	if err != nil || !errors.Is(e.Validate(e.Time.UnixNano(), at.UnixNano()), schemas.ErrTimeZero) {
		t.Errorf("ts 0: %v %v", e.Time, err)
	}
	if e, err := Parse([]byte(`{"ts":null}`)); err != nil || !e.Time.IsZero() {
		t.Errorf("ts null: %v %v", e.Time, err)
	}
}

func TestParseJSONTimeRefuses(t *testing.T) {
	for _, s := range []string{"", "x", "NaN", "Inf", "1.x", "1.-5", "1.+5", "1e400", "-1e30"} {
		if at, err := schemas.ParseJSONTime(s); err == nil {
			t.Errorf("%q: got %v", s, at)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		line string
		want error
		text string
	}{
		{``, schemas.ErrNotJSON, "at byte 0 of 0"},
		{`hello`, schemas.ErrNotJSON, "at byte 1 of 5"},
		{`{"a":1`, schemas.ErrNotJSON, "at byte 6 of 6"},
		{`{"a":1} x`, schemas.ErrNotJSON, "at byte 9 of 9"},
		{`{"a":01}`, schemas.ErrNotJSON, "at byte 7 of 8"},
		{"{\"a\":\"\n\"}", schemas.ErrNotJSON, "in string"},
		{`[{"a":1}]`, schemas.ErrJSONEvent, "an array, it must be an object"},
		{` "a"`, schemas.ErrJSONEvent, "a string"},
		{`1`, schemas.ErrJSONEvent, "a number"},
		{`-1`, schemas.ErrJSONEvent, "a number"},
		{`true`, schemas.ErrJSONEvent, "a truth value"},
		{`null`, schemas.ErrJSONEvent, "null"},
		{`{"ts":"yesterday"}`, schemas.ErrJSONEvent, `"ts": "yesterday" is not a time; write it as 2026-11-23T10:00:00Z`},
		{`{"ts":{"a":[]}}`, schemas.ErrJSONEvent, `"ts" is an object, it must be a time`},
		{`{"ts.a":[]}`, nil, ""},
		{`{"ts":{"a":1},"time":1700000000}`, nil, ""},
		{`{"@timestamp":{"$date":"noon"}}`, schemas.ErrJSONEvent, "noon"},
		{`{"ts":[1]}`, schemas.ErrJSONEvent, `"ts": `},
		{`{"ts":true}`, schemas.ErrJSONEvent, `"ts": `},
		{`{"time":"0001-01-01T00:00:00Z"}`, schemas.ErrTimeTooOld, `"time": `},
		{strings.Repeat("[", 100000), schemas.ErrNotJSON, "depth"},
		{strings.Repeat(`{"a":`, 100000) + "1" + strings.Repeat("}", 100000), schemas.ErrNotJSON, "depth"},
	} {
		_, err := Parse([]byte(c.line))
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.text) {
			t.Errorf("%.40s: got %v, want %v with %q", c.line, err, c.want, c.text)
		}
	}
	deep := strings.Repeat(`{"a":`, 9000) + "1" + strings.Repeat("}", 9000)
	if e, err := Parse([]byte(deep)); err != nil || len(e.Attrs) != 1 {
		t.Errorf("9,000 deep: %v", err)
	}
}

func TestParseKeepsBytes(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"a\xed\xb9\xa4\xffb", "a\xed\xb9\xa4\xffb"},
		{`\b\f\n\r\t\"\\\/`, "\b\f\n\r\t\"\\/"},
		{`\u00e9\u20AC`, "é€"},
		{`\ud83d\ude00`, "😀"},
		{`\ud800`, "\xed\xa0\x80"},
		{`\ud800x`, "\xed\xa0\x80x"},
		{`\udc00\ud800`, "\xed\xb0\x80\xed\xa0\x80"},
		{`\ud800\u0041`, "\xed\xa0\x80A"},
		{`\ud800\n`, "\xed\xa0\x80\n"},
		{`\u0000`, "\x00"},
	} {
		e, err := Parse([]byte(`{"message":"` + c.in + `","k` + c.in + `":"` + c.in + `","arr":["` + c.in + `"]}`))
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if e.Message != c.want || e.Attrs[0].Key != "k"+c.want || e.Attrs[0].Text() != c.want {
			t.Errorf("%q: got %q and %q=%q", c.in, e.Message, e.Attrs[0].Key, e.Attrs[0].Text())
		}
		if got := e.Attrs[1].Text(); got != `["`+c.in+`"]` {
			t.Errorf("%q in an array: got %q", c.in, got)
		}
	}
}

func TestParseRest(t *testing.T) {
	var b strings.Builder
	for i := range schemas.MaxAttrs + 2 {
		fmt.Fprintf(&b, `,"k%d":[%d, "x"]`, i, i)
	}
	long := strings.Repeat("n", schemas.MaxAttrKeyBytes+1)
	e, err := Parse([]byte(`{"` + long + `":{"a":1}` + b.String() + "}"))
	if err != nil {
		t.Fatal(err)
	}
	last := &e.Attrs[len(e.Attrs)-1]
	var rest map[string]json.RawMessage
	if err := json.Unmarshal([]byte(last.Text()), &rest); err != nil || last.Key != schemas.AttrRest {
		t.Fatalf("%s=%s: %v", last.Key, last.Text(), err)
	}
	if len(e.Attrs) != schemas.MaxAttrs || len(rest) != 4 || string(rest[long+".a"]) != "1" || string(rest["k257"]) != `[257,"x"]` {
		t.Errorf("%d attributes, rest %s", len(e.Attrs), last.Text())
	}
	if err := e.Validate(1, 1); err != nil {
		t.Error(err)
	}

	exact, err := Parse([]byte("{" + b.String()[1:strings.Index(b.String(), `,"k256"`)] + "}"))
	if err != nil || len(exact.Attrs) != schemas.MaxAttrs || exact.Attrs[schemas.MaxAttrs-1].Key != "k255" {
		t.Errorf("%d attributes exactly: %v", schemas.MaxAttrs, err)
	}
}

func TestKeys(t *testing.T) {
	k := Keys{Times: []string{"actor.when"}, User: "actor.login"}
	e, err := k.Parse([]byte(`{"time":"noon","user_id":"other","actor":{"when":1700000000,"login":"ann"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if e.Time.Unix() != 1700000000 || e.UserID != "ann" {
		t.Errorf("got %v %q", e.Time, e.UserID)
	}
	want := []string{"time=noon", "user_id=other", "actor.when=1700000000", "actor.login=ann"}
	if got := textsOf(e.Attrs); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := k.Parse([]byte(`{"ts":1}`)); !errors.Is(err, schemas.ErrJSONEvent) || !strings.Contains(err.Error(), "actor.when") {
		t.Errorf("without the named time: %v", err)
	}

	k = Keys{ParseTime: func(s string) (time.Time, error) { return time.Parse(time.DateTime, s) }}
	e, err = k.FromPairs([]Pair{{"timestamp", "2014-04-02 14:29:00"}, {"value", "42.0"}, {"a\"\x00\xff", "\\\"\x01\xff"}, {"value", "2"}})
	if err != nil || !e.Time.Equal(time.Date(2014, 4, 2, 14, 29, 0, 0, time.UTC)) {
		t.Fatal(e.Time, err)
	}
	want = []string{"value=42.0", "a\"\x00\xff=\\\"\x01\xff", "value#2=2"}
	if got := textsOf(e.Attrs); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A flat record of any texts comes back whole, whether given as pairs or as JSON.
func TestPairsSurvive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,8}[^a-z]?`), 0, 300, rapid.ID[string]).Draw(t, "keys")
		var pairs []Pair
		want := map[string]string{}
		for _, k := range keys {
			if _, word := schemas.JSONWords[k]; word {
				continue
			}
			v := rapid.String().Draw(t, "value")
			pairs, want[k] = append(pairs, Pair{k, v}), v
		}
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		flat, err1 := Keys{}.FromPairs(pairs)
		object, err2 := Parse(text)
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		for _, e := range []schemas.Event{flat, object} {
			got := map[string]string{}
			for i := range e.Attrs {
				if e.Attrs[i].Key != schemas.AttrRest {
					got[e.Attrs[i].Key] = e.Attrs[i].Text()
				} else if err := json.Unmarshal([]byte(e.Attrs[i].Text()), &got); err != nil {
					t.Fatal(err)
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"message":"hi","user_id":"u-7"}`, `{"ts":1700000000.5,"a":{"b":[1,{}]},"n":-1.0e+3,"s":"\ud800\u0000"}`,
		`{"a":1,"a":2,"":null}`, `[`, `{"a":"` + "\xff" + `"}`, ` {"attributes":{"k":true}} `,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Parse(line)
		if err != nil {
			if !errors.Is(err, schemas.ErrNotJSON) && !errors.Is(err, schemas.ErrJSONEvent) {
				t.Fatalf("%v is neither ErrNotJSON nor ErrJSONEvent", err)
			}
			return
		}
		if len(e.Attrs) > schemas.MaxAttrs {
			t.Fatalf("%d attributes", len(e.Attrs))
		}
		seen := map[string]bool{}
		for i := range e.Attrs {
			k := e.Attrs[i].Key
			if k == "" || len(k) > schemas.MaxAttrKeyBytes || seen[k] {
				t.Fatalf("name %q", k)
			}
			seen[k] = true
		}
		if n := len(e.Attrs); n > 0 && strings.HasPrefix(e.Attrs[n-1].Key, schemas.AttrRest+"#") && !json.Valid([]byte(e.Attrs[n-1].Text())) {
			t.Fatalf("rest is not JSON: %s", e.Attrs[n-1].Text())
		}
		again, err := Parse(line)
		if err != nil || !reflect.DeepEqual(e, again) {
			t.Fatalf("not the same again: %+v %+v %v", e, again, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	line := []byte(`{"ts":"2026-11-05T10:00:00Z","level":"info","service":"api","message":"GET /orders 200","user_id":"u-7","http":{"status":200,"ms":1.5,"path":"/orders"}}`)
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(line); err != nil {
			b.Fatal(err)
		}
	}
}
