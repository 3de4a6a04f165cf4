package frame

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

var privacyKey = []byte("0123456789abcdef")

func privateTopic(rules ...schemas.Private) schemas.Topic {
	t := schemas.NewTopic("app", schemas.Field{Name: "lat", Type: schemas.TypeFloat64}, schemas.Field{Name: "host", Type: schemas.TypeString})
	t.PII = rules
	return t
}

func textsOf(attrs []schemas.Attr) []string {
	var out []string
	for i := range attrs {
		out = append(out, attrs[i].Key+"="+attrs[i].Text())
	}
	return out
}

// ruled is what a bare JSON line becomes on a topic: parsed, ruled, encoded.
func ruled(t testing.TB, topic *schemas.Topic, keys rawjson.Keys, line []byte) (schemas.Event, []byte) {
	t.Helper()
	keys.Topic = topic
	e, err := keys.Parse(line)
	if err != nil {
		t.Fatal(err)
	}
	privacy.New(topic, privacyKey).Apply(&e)
	b := NewBuilder(topic)
	b.Append(&e, 1, schemas.NewID(1))
	f, payload := b.Encode()
	var r Reader
	if err := r.Open(payload, topic, f.Schema); err != nil {
		t.Fatal(err)
	}
	return r.Event(0), r.Raw()
}

// manyKeys are n members that no rule names.
func manyKeys(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":%d,`, i, i)
	}
	return b.String()
}

// The values that leaked, each by its way.
func TestRulesHoldForDerivedNames(t *testing.T) {
	topic := privateTopic(schemas.Private{Field: "email", Rule: schemas.PrivacyDrop}, schemas.Private{Field: "ip", Rule: schemas.PrivacyTruncateIP}, schemas.Private{Field: "user_id", Rule: schemas.PrivacyHash},
		schemas.Private{Field: "users.card", Rule: schemas.PrivacyHash}, schemas.Private{Field: "message", Rule: schemas.PrivacyDrop}, schemas.Private{Field: "lat", Rule: schemas.PrivacyCoarseLocation},
		schemas.Private{Field: "a.b.c.d.e.f.g.h.i", Rule: schemas.PrivacyDrop}, schemas.Private{Field: "service.owner", Rule: schemas.PrivacyDrop})
	if err := topic.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, line := range map[string]string{
		"a key twice":          `{"email":"x","email":"CLEAR"}`,
		"an object":            `{"email":{"home":"CLEAR","":{"x":["CLEAR"]}}}`,
		"wrapped":              `{"email":"x","attributes":{"email":"CLEAR","user_id":"CLEAR"}}`,
		"wrapped twice":        `{"attributes":{"attributes":{"email":"CLEAR","Attributes":{"email":"CLEAR"}}}}`,
		"as a name":            `{"attributes.email":"CLEAR","email.home":"CLEAR","email#7":"CLEAR","email[0]":"CLEAR"}`,
		"many keys":            `{` + manyKeys(300) + `"email":"CLEAR","ip":"203.0.113.77 CLEAR","email":{"home":"CLEAR"}}`,
		"many names of a rule": `{` + strings.Repeat(`"email":"CLEAR",`, 300) + `"z":1}`,
		"a user's members":     `{"user_id":{"name":"CLEAR"},"user_id":["CLEAR"]}`,
		"case":                 `{"Email":"CLEAR","EMAIL":{"x":"CLEAR"},"User_Id":"CLEAR"}`,
		"escaped names":        `{"\u0065mail":"CLEAR","\u0061ttributes":{"e\u006dail":"CLEAR"}}`,
		"empty keys":           `{"":{"email":"CLEAR","":{"email":"CLEAR"}},"email":{"":"CLEAR"}}`,
		"sloppy names":         `{" email":"CLEAR","email ":"CLEAR","email\u0000":"CLEAR","\u0000email":"CLEAR"}`,
		"arrays of objects":    `{"users":[{"card":"CLEAR"},{"x":[{"y":1}],"card":{"no":"CLEAR"}}],"users":[[{"Card":["CLEAR"]}]]}`,
		"JSON in a text":       `{"users":"[{\"card\":\"CLEAR\"}]"}`,
		"below the flattening": `{"a":{"b":{"c":{"d":{"e":{"f":{"g":{"h":{"i":{"j":"CLEAR"}}}}}}}}}}`,
		"the other word":       `{"message":"CLEAR","msg":"CLEAR"}`,
		"the other word first": `{"msg":"CLEAR","message":{"a":"CLEAR"},"msg":"CLEAR"}`,
		"JSON in a column":     `{"service":[{"owner":"CLEAR"}],"ts":5}`,
		"a rest of its own":    `{"almanac_rest":{"email":"CLEAR"},"almanac_rest#":"{\"email\":\"CLEAR\"}","ALMANAC_REST":"{\"ip\":\"CLEAR\"}"}`,
		"not an address":       `{"ip":"CLEAR","ip":["203.0.113.77","CLEAR"]}`,
		"no place":             `{"lat":"CLEAR","lat":["CLEAR"]}`,
		"a long name":          `{"email` + strings.Repeat(".x", 200) + `":"CLEAR"}`,
		"invalid UTF-8":        "{\"email\":\"\xffCLEAR\xfe\",\"email\xff\":1,\"email.\xff\":\"CLEAR\"}",
	} {
		t.Run(name, func(t *testing.T) {
			if !json.Valid([]byte(line)) {
				t.Fatal("not JSON")
			}
			e, raw := ruled(t, &topic, rawjson.Keys{}, []byte(line))
			if bytes.Contains(raw, []byte("CLEAR")) {
				t.Errorf("stored: %q", textsOf(e.Attrs))
			}
			clean, ok := privacy.New(&topic, privacyKey).Clean([]byte(line))
			if !ok || !json.Valid(clean) || bytes.Contains(clean, []byte("CLEAR")) {
				t.Errorf("cleaned: %s", clean)
			}
		})
	}
	for name, want := range map[string]string{"email_hash": "1", "emails": "2", "users.name": "3", "ip-version": "4", "x.email": "5"} {
		t.Run(name, func(t *testing.T) {
			e, _ := ruled(t, &topic, rawjson.Keys{}, fmt.Appendf(nil, `{%q:%s}`, name, want))
			if len(e.Attrs) != 1 || e.Attrs[0].Key != name || e.Attrs[0].Text() != want {
				t.Errorf("%s became %q", name, textsOf(e.Attrs))
			}
		})
	}
}

// A field that becomes the user does not stay beside it in clear.
func TestRuleOfTheUserField(t *testing.T) {
	topic := privateTopic(schemas.Private{Field: "user_id", Rule: schemas.PrivacyHash})
	for _, line := range []string{`{"a":{"b":"CLEAR"},"x":1}`, `{"a":{"b":"CLEAR"},"a":{"b":"CLEAR","B":"CLEAR"},"x":1}`, `{"a":{"b":{"c":"CLEAR"}},"x":1}`} {
		e, raw := ruled(t, &topic, rawjson.Keys{User: "a.b"}, []byte(line))
		if bytes.Contains(raw, []byte("CLEAR")) || len(e.Attrs) != 1 {
			t.Errorf("%s: %q", line, textsOf(e.Attrs))
		}
	}
	plain := schemas.NewTopic("app")
	e, err := rawjson.Keys{User: "a.b", Topic: &plain}.Parse([]byte(`{"a":{"b":"u"}}`))
	if err != nil || e.UserID != "u" || len(e.Attrs) != 1 {
		t.Errorf("without a rule: %+v, %v", e, err)
	}
}

// Promoted fields are taken before the limit on attributes counts,
// wherever they stand.
func TestPromotedFieldsBeforeTheLimit(t *testing.T) {
	topic := schemas.NewTopic("app", schemas.Field{Name: "public", Type: schemas.TypeBool}, schemas.Field{Name: "n", Type: schemas.TypeInt64})
	line := `{` + manyKeys(400) + `"public":true,"n":7}`
	e, err := rawjson.Keys{Topic: &topic}.Parse([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Attrs) != schemas.MaxAttrs {
		t.Errorf("%d attributes", len(e.Attrs))
	}
	r := framed(t, &topic, &e)
	if got := r.Event(0); got.Attrs[0] != schemas.Bool("public", true) || got.Attrs[1] != schemas.Int64("n", 7) {
		t.Errorf("%q", textsOf(got.Attrs[:2]))
	}
}

// Ruled gives a query the text that is stored.
func TestRuled(t *testing.T) {
	topic := privateTopic(schemas.Private{Field: "user_id", Rule: schemas.PrivacyHash}, schemas.Private{Field: "email", Rule: schemas.PrivacyDrop})
	e := schemas.Event{UserID: "u-7"}
	privacy.New(&topic, privacyKey).Apply(&e)
	if got, rule, err := privacy.Ruled(&topic, schemas.ColUserID, "u-7", privacyKey); got != e.UserID || rule != schemas.PrivacyHash || err != nil {
		t.Errorf("%q, %s, %v", got, rule, err)
	}
	if _, _, err := privacy.Ruled(&topic, schemas.ColUserID, "u-7", nil); err == nil {
		t.Error("hashed without a key")
	}
	if got, rule, err := privacy.Ruled(&topic, "email", "a", nil); got != "" || rule != schemas.PrivacyDrop || err != nil {
		t.Errorf("%q, %s, %v", got, rule, err)
	}
	if got, rule, err := privacy.Ruled(&topic, "host", "a", nil); got != "a" || rule != "" || err != nil {
		t.Errorf("%q, %s, %v", got, rule, err)
	}
}

// Whatever the record and the rules, what a rule covers is in no
// column of the frame, and not in the cleaned text of a dead letter.
func TestNothingInClear(t *testing.T) {
	names := rapid.SampledFrom([]string{"email", "Email", "ip", "user_id", "msg", "message", "users", "card", "attributes", "a", "b", "", "almanac_rest", "email#2", "#2", "x", "service", "lat", " email"})
	rapid.Check(t, func(t *rapid.T) {
		topic := privateTopic()
		for _, field := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"email", "ip", "user_id", "message", "users.card", "a.b", "attributes.x", "lat", "service.a"}), rapid.ID[string]).Draw(t, "fields") {
			rule := rapid.SampledFrom(schemas.PrivacyRules).Draw(t, "rule")
			if field == "user_id" {
				rule = schemas.PrivacyHash // lanes are cut by it
			}
			if field == "lat" {
				rule = schemas.PrivacyCoarseLocation
			}
			topic.PII = append(topic.PII, schemas.Private{Field: field, Rule: rule})
		}
		if err := topic.Validate(); err != nil {
			t.Fatal(err)
		}
		if len(topic.PII) == 0 {
			return
		}
		leaves := 0
		var draw func(path string, depth int, secret bool) string
		draw = func(path string, depth int, secret bool) string {
			secret = secret || topic.RuleOf(path) != ""
			switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case depth < 4 && kind < 2:
				var members []string
				for range rapid.IntRange(0, 4).Draw(t, "members") {
					key := names.Draw(t, "key")
					members = append(members, strconv.Quote(key)+":"+draw(strings.TrimPrefix(path+"."+key, "."), depth+1, secret))
				}
				return "{" + strings.Join(members, ", ") + "}"
			case depth < 4 && kind == 2:
				return "[" + draw(path, depth+1, secret) + " , " + draw(path, depth+1, secret) + "]"
			}
			if leaves++; secret {
				return fmt.Sprintf(`"CLEAR %d"`, leaves)
			}
			return fmt.Sprintf(`"open %d"`, leaves)
		}
		var line strings.Builder
		line.WriteString("{")
		if rapid.Bool().Draw(t, "wide") {
			line.WriteString(manyKeys(schemas.MaxAttrs))
		}
		for range rapid.IntRange(1, 8).Draw(t, "n") {
			key := names.Draw(t, "key")
			line.WriteString(strconv.Quote(key))
			line.WriteString(":" + draw(key, 0, false) + ",")
		}
		line.WriteString(`"end":1}`)
		text := []byte(line.String())
		e, err := rawjson.Keys{Topic: &topic}.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		privacy.New(&topic, privacyKey).Apply(&e)
		r := framed(t, &topic, &e)
		if bytes.Contains(r.Raw(), []byte("CLEAR")) {
			t.Fatalf("rules %v\nof %s\nstored %+v, %q", topic.PII, text, r.Event(0), textsOf(e.Attrs))
		}
		clean, ok := privacy.New(&topic, privacyKey).Clean(text)
		if !ok || !json.Valid(clean) || bytes.Contains(clean, []byte("CLEAR")) {
			t.Fatalf("rules %v\nof %s\ncleaned %s", topic.PII, text, clean)
		}
		for i := 1; i <= leaves; i++ { // and nothing else is touched in the letter
			if open := fmt.Sprintf(`"open %d"`, i); bytes.Contains(text, []byte(open)) != bytes.Contains(clean, []byte(open)) {
				t.Fatalf("rules %v\nof %s\ncleaned %s of %s", topic.PII, text, clean, open)
			}
		}
	})
}

// An empty key that comes twice gets a number, which hides nothing below it.
func TestEmptyKeyTwice(t *testing.T) {
	topic := privateTopic(schemas.Private{Field: "email", Rule: schemas.PrivacyDrop})
	for name, wide := range map[string]string{"few keys": "", "more than an event has": manyKeys(schemas.MaxAttrs)} {
		t.Run(name, func(t *testing.T) {
			e, err := rawjson.Keys{Topic: &topic}.Parse([]byte(`{` + wide + `"":[{"email":"CLEAR"}],"":[{"email":"CLEAR"}],"":{"email":"CLEAR"},"#2":{"email":"CLEAR"},"end":1}`))
			if err != nil {
				t.Fatal(err)
			}
			privacy.New(&topic, privacyKey).Apply(&e)
			if got := fmt.Sprintf("%q", textsOf(e.Attrs)); strings.Contains(got, "CLEAR") {
				t.Errorf("kept %s", got)
			}
		})
	}
}

// Records of other protocols may name the user, or another column, twice.
// What does not fill the column stands under its rule too.
func TestOtherNamesOfAColumn(t *testing.T) {
	paths := rawjson.NewPaths(map[string][]string{
		schemas.ColUserID: {"user_id", "user.id", "user.name"}, schemas.ColService: {"service.name", "app"}, schemas.ColLevel: {"level", "severity"}, schemas.ColMessage: {"message", "msg"},
	})
	topic := privateTopic(schemas.Private{Field: "user_id", Rule: schemas.PrivacyHash}, schemas.Private{Field: "service", Rule: schemas.PrivacyDrop}, schemas.Private{Field: "message", Rule: schemas.PrivacyDrop})
	for _, line := range []string{
		`{"user_id":"CLEAR","user":{"id":"CLEAR","name":"CLEAR"},"level":"info","severity":"open"}`,
		`{"user.name":"CLEAR","user":{"id":"CLEAR"},"user.id":"CLEAR","x":"open"}`,
		`{"service":{"name":"CLEAR"},"app":"CLEAR","x":"open"}`,
		`{"message":"CLEAR","msg":"CLEAR","app":"CLEAR","service.name":"CLEAR","x":"open"}`,
	} {
		e, err := rawjson.Keys{Paths: paths, Topic: &topic}.FromRecord(nil, line)
		if err != nil {
			t.Fatal(err)
		}
		privacy.New(&topic, privacyKey).Apply(&e)
		if text := fmt.Sprintf("%+v %q", e, textsOf(e.Attrs)); strings.Contains(text, "CLEAR") || !strings.Contains(text, "open") {
			t.Errorf("%s: %s", line, text)
		}
	}
	clearing := schemas.NewTopic("app")
	clearing.Anonymise = schemas.Anonymise{AfterDays: 30, Fields: []string{schemas.ColUserID}}
	e, err := rawjson.Keys{Paths: paths, Topic: &clearing}.FromRecord(nil, `{"user_id":"a","user":{"id":"b"},"service.name":"s","app":"t"}`)
	if got := textsOf(e.Attrs); err != nil || len(e.Attrs) != 2 || e.Attrs[0].Key != "user_id.user.id" || e.Attrs[1].Key != "app" {
		t.Errorf("%q, %v", got, err)
	}
}

// The customer of a meter event by the names of CloudEvents and of Stripe.
func TestCustomersOfMeters(t *testing.T) {
	for name, line := range map[string]string{
		"CloudEvents":         `{"specversion":"1.0","type":"bytes","source":"gw","id":"a-1","subject":"s1","data":{"value":7,"user_id":"CLEAR"}}`,
		"CloudEvents, named":  `{"specversion":"1.0","type":"bytes","source":"gw","id":"a-1","subject":"s1","user_id":"CLEAR","data":{"value":7,"user_id":"CLEAR"}}`,
		"Stripe":              `{"event_name":"tokens","identifier":"id-9","payload":{"stripe_customer_id":"CLEAR","value":"25"}}`,
		"Stripe with a space": `{"event_name":"tokens","identifier":"id-9","space":"s1","payload":{"stripe_customer_id":"CLEAR","value":"25"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			topic := schemas.NewTopicOf("meter", "usage")
			topic.PII = []schemas.Private{{Field: schemas.ColUserID, Rule: schemas.PrivacyHash}}
			for _, spaceRule := range []bool{false, true} {
				if spaceRule {
					topic.PII = append(topic.PII, schemas.Private{Field: "space", Rule: schemas.PrivacyHash})
				}
				e, err := rawjson.Keys{Topic: &topic}.Parse([]byte(line))
				if err != nil {
					t.Fatal(err)
				}
				user := e.UserID
				privacy.New(&topic, privacyKey).Apply(&e)
				if text := fmt.Sprintf("%+v %q", e, textsOf(e.Attrs)); strings.Contains(text, "CLEAR") || user != "CLEAR" {
					t.Errorf("%s: %s", name, text)
				}
				if err := topic.Check(&e, atNoon.UnixNano(), atNoon.UnixNano()); (err == nil) != (spaceRule || name != "Stripe") {
					t.Errorf("%s, a rule for the space: %v: %v", name, spaceRule, err)
				}
			}
		})
	}
}

// framed reads a frame of one event back.
func framed(t rapid.TB, topic *schemas.Topic, e *schemas.Event) *Reader {
	t.Helper()
	b := NewBuilder(topic)
	b.Append(e, 1, schemas.NewID(1))
	f, payload := b.Encode()
	var r Reader
	if err := r.Open(payload, topic, f.Schema); err != nil {
		t.Fatal(err)
	}
	return &r
}
