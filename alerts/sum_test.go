package alerts

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// meaning says, of each field of a rule, whether another value of it makes it another rule, whose earlier alerts end: of one that makes alerts, and
// of one that records, whose labels are of the series that it writes.
var meaning = map[string]struct{ alert, record bool }{
	"Alert": {true, true}, "Record": {true, true}, "Topic": {true, true}, "Where": {true, true}, "Window": {true, true}, "Condition": {true, true},
	"Silence": {true, true}, "Expr": {true, true}, "Meter": {true, true}, "Measure": {true, true}, "Unusual": {true, true}, "Days": {true, true},
	"Least": {true, true}, "QueryOffset": {true, true}, "By": {true, true}, "For": {true, true}, "KeepFiringFor": {true, true},
	"Interval": {false, false}, "Labels": {false, true}, "Annotations": {false, false}, "Notify": {false, false},
}

// another gives a field another value.
func another(t *testing.T, f reflect.Value) {
	t.Helper()
	switch f.Kind() {
	case reflect.String:
		f.SetString(f.String() + "x")
	case reflect.Int, reflect.Int64:
		f.SetInt(f.Int() + int64(time.Second))
	case reflect.Float64:
		f.SetFloat(f.Float() + 1)
	case reflect.Map:
		f.Set(reflect.ValueOf(map[string]string{"a": "b"}))
	case reflect.Slice:
		f.Set(reflect.ValueOf([]string{"x"}))
	default:
		t.Fatalf("a field of kind %s: say here what another value of it is", f.Kind())
	}
}

// TestSumOfEachField holds which fields a rule's state goes by: another value of these, and of no other, ends its alerts, and has what it recorded
// and how far it is evaluated begin with nothing.
func TestSumOfEachField(t *testing.T) {
	t.Parallel()
	alert, record := Rule{Alert: "A", Topic: "metrics", Expr: "up"}, Rule{Record: "m", Topic: "metrics", Expr: "up"}
	fields := reflect.TypeFor[Rule]()
	if fields.NumField() != len(meaning) {
		t.Errorf("a rule has %d fields, and of %d is said whether they change what it means", fields.NumField(), len(meaning))
	}
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		of, said := meaning[name]
		if !said {
			t.Errorf("%s: it is not said whether it changes what a rule means", name)
			continue
		}
		for _, c := range []struct {
			rule Rule
			want bool
		}{{alert, of.alert}, {record, of.record}} {
			changed := c.rule
			another(t, reflect.ValueOf(&changed).Elem().Field(i))
			if got := changed.Sum() != c.rule.Sum(); got != c.want {
				t.Errorf("another %s of rule %s makes it another: %t, want %t", name, c.rule.Title(), got, c.want)
			}
			if got := changed.AskedKey("g") != c.rule.AskedKey("g"); got != c.want {
				t.Errorf("another %s of rule %s is written under another key: %t, want %t", name, c.rule.Title(), got, c.want)
			}
			if changed.AskedKey("g") == changed.AskedKey("h") {
				t.Errorf("rule %s has one key in two groups", c.rule.Title())
			}
		}
	}
}

// TestSumStays holds that the names of what rules mean are those of earlier versions: with others an upgrade would end each alert and have it fire again.
func TestSumStays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule      Rule
		sum, asks string
	}{
		{Rule{Alert: "A", Topic: "app", Where: `type = "x"`, Window: Span(time.Minute), Condition: ">= 5", By: "user_id", For: Span(time.Second)}, "f58313fc2234356b", "673719a114ef72e3"},
		{Rule{Alert: "A", Topic: "metrics", Expr: "up == 0", Interval: Span(time.Minute)}, "d6cb88a48e80a661", "ff5b78b5febe27e8"},
		{Rule{Record: "a:b", Topic: "metrics", Expr: "sum(up)", Labels: map[string]string{"team": "web", "a": "b"}}, "a8c06cafdd77e138", "67a8fbfb7bd69bd0"},
		{Rule{Alert: "A", Topic: "bytes", Meter: "sent", Measure: MeasureSum, Window: Span(24 * time.Hour), Unusual: 5, Days: 14, Least: 1e9}, "e37036d1f78701a4", "b2c0aeb8dcc5f844"},
	} {
		if sum, asks := c.rule.Sum(), c.rule.AskedKey("g"); sum != c.sum || asks != c.asks {
			t.Errorf("%s: %q, %q, want %q, %q", c.rule.Title(), sum, asks, c.sum, c.asks)
		}
	}
}

// TestRecordsInAHashingTopic holds that a rule does not record into a topic whose privacy rules hash, for what it reads is hashed already and would be
// hashed again, and that other rules, other privacy rules and a hash that was taken back hold up nothing.
func TestRecordsInAHashingTopic(t *testing.T) {
	t.Parallel()
	record, alert := Rule{Record: "a:b", Expr: "up"}, Rule{Alert: "A", Expr: "up"}
	of := func(rules ...schemas.PrivacyRule) schemas.Topic {
		topic := schemas.NewTopicOf(kinds.Metric, "metrics")
		for i, rule := range rules {
			topic.PII = append(topic.PII, schemas.Private{Field: fmt.Sprint("attributes.a", i), Rule: rule})
		}
		return topic
	}
	for name, c := range map[string]struct {
		rule    Rule
		topic   schemas.Topic
		refused bool
	}{
		"none":                    {record, of(), false},
		"one that hashes":         {record, of(schemas.PrivacyHash), true},
		"an alert over it":        {alert, of(schemas.PrivacyHash), false},
		"one that takes away":     {record, of(schemas.PrivacyDrop), false},
		"one that was taken back": {record, func() schemas.Topic { t := of(); t.Lifted = of(schemas.PrivacyHash).PII; return t }(), false},
		"both":                    {record, of(schemas.PrivacyDrop, schemas.PrivacyHash), true},
	} {
		_, err := c.rule.Compile(&c.topic)
		if refused := err != nil && strings.Contains(err.Error(), "hashed again"); refused != c.refused || err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
