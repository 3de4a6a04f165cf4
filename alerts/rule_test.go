package alerts

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/alerts/decide"
	"github.com/almanac-events/almanac/schemas"
)

// What a list hides of receivers is all that it takes to call one, and the group itself stays as it is.
func TestHidden(t *testing.T) {
	t.Parallel()
	g := Group{Name: "g", Receivers: []Receiver{
		{Name: "chat", Form: "slack", URL: "https://hooks.example.com:8443/services/T0/hush?token=hush#hush"}, {Name: "pager", Form: "pagerduty", URL: "https://e.example.com/v2/enqueue", RoutingKey: "hush0123456789"},
		{Name: "odd", URL: "hush"}, {Name: "named", URL: "https://hush:hush@h.example.com/", Secret: "ops"}, {Name: "none"},
	}}
	want := []Receiver{
		{Name: "chat", Form: "slack", URL: "https://hooks.example.com:8443/xxxxx"}, {Name: "pager", Form: "pagerduty", URL: "https://e.example.com/xxxxx", RoutingKey: "xxxxx"},
		{Name: "odd", URL: "xxxxx"}, {Name: "named", URL: "https://h.example.com/xxxxx", Secret: "ops"}, {Name: "none"},
	}
	if got := g.Hidden(); !slices.Equal(got.Receivers, want) || got.Name != "g" {
		t.Errorf("%+v, want %+v", got, want)
	}
	if !strings.Contains(g.Receivers[0].URL, "hush") || g.Receivers[1].RoutingKey != "hush0123456789" {
		t.Errorf("the group itself lost what it hides: %+v", g.Receivers)
	}
}

func TestParse(t *testing.T) {
	const good = `{alert: A, topic: app, window: 1m, condition: "> 1"}`
	for name, c := range map[string]struct {
		text string
		says string // empty: it is good
	}{
		"good":                 {`groups: [{name: g, rules: [` + good + `]}]`, ""},
		"topic of the group":   {`groups: [{name: g, topic: app, rules: [{alert: A, silence: 15m}]}]`, ""},
		"no rules":             {`groups: [{name: g, rules: []}]`, ""},
		"empty":                {``, "no groups"},
		"not YAML":             {`{`, "bad rule"},
		"unknown field":        {`groups: [{name: g, rules: [{alert: A, topic: app, windwo: 1m}]}]`, "windwo"},
		"a name of a path":     {`groups: [{name: ns/team, rules: [` + good + `]}]`, ""},
		"a name of dots":       {`groups: [{name: .., rules: [` + good + `]}]`, "no path over HTTP"},
		"no name":              {`groups: [{rules: []}]`, "a group has a name"},
		"two groups":           {`groups: [{name: g, rules: []}, {name: g, rules: []}]`, "two groups of that name"},
		"two rules":            {`groups: [{name: g, rules: [` + good + `, ` + good + `]}]`, "two rules of that name"},
		"no topic":             {`groups: [{name: g, rules: [{alert: A, silence: 1m}]}]`, "topic is missing"},
		"no alert":             {`groups: [{name: g, rules: [{topic: app, silence: 1m}]}]`, "expected a name"},
		"window and silence":   {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, window: 1m}]}]`, "either window and condition, or silence"},
		"neither":              {`groups: [{name: g, rules: [{alert: A, topic: app, condition: "> 1"}]}]`, "either window and condition, or silence"},
		"silence of condition": {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, condition: "> 1"}]}]`, "silence has no condition"},
		"no condition":         {`groups: [{name: g, rules: [{alert: A, topic: app, window: 1m}]}]`, `condition: ""`},
		"a bad condition":      {`groups: [{name: g, rules: [{alert: A, topic: app, window: 1m, condition: ">= five"}]}]`, `condition: ">= five"`},
		"a short window":       {`groups: [{name: g, rules: [{alert: A, topic: app, window: 100ms, condition: "> 1"}]}]`, "expected 1s to 24h"},
		"a long window":        {`groups: [{name: g, rules: [{alert: A, topic: app, window: 2d, condition: "> 1"}]}]`, "expected 1s to 24h"},
		"a bad length":         {`groups: [{name: g, rules: [{alert: A, topic: app, window: soon, condition: "> 1"}]}]`, `"soon" is not a length of time`},
		"a long for":           {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, for: 2d}]}]`, "at most 24h"},
		"a long by":            {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, by: attributes.` + strings.Repeat("x", MaxNameBytes) + `}]}]`, "by: \"attributes.xxx"},
		"a bad label":          {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, labels: {"a b": x}}]}]`, `"a b"`},
		"a long name":          {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, labels: {` + strings.Repeat("x", MaxNameBytes+1) + `: "1"}}]}]`, "at most 200 bytes"},
		"many labels":          {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, labels: {` + manyLabels(MaxNames+1) + `}}]}]`, "65 labels or annotations; the limit is 64"},
		"long annotations":     {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, annotations: {a: "` + strings.Repeat("x", MaxTextBytes) + `"}}]}]`, "the limit is 4096"},
		"unknown receiver":     {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, notify: [x]}]}]`, `no receiver "x"`},
		"receiver of the file": {`{receivers: [{name: x, url: "https://h.example.com/"}], groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, notify: [x]}]}]}`, ""},
		"a bad URL":            {`groups: [{name: g, rules: [], receivers: [{name: x, url: "file:///etc"}]}]`, "scheme"},
		"a bad receiver":       {`groups: [{name: g, rules: [], receivers: [{name: X, url: "https://h.example.com/"}]}]`, `"X"`},
		"two receivers":        {`groups: [{name: g, rules: [], receivers: [{name: x, url: "https://h.example.com/"}, {name: x, url: "https://h.example.com/"}]}]`, "is there twice"},
		"a form":               {`groups: [{name: g, rules: [], receivers: [{name: x, url: "https://h.example.com/", form: slack}]}]`, ""},
		"an unknown form":      {`groups: [{name: g, rules: [], receivers: [{name: x, url: "https://h.example.com/", form: fax}]}]`, `form is "fax"; expected json, slack, pagerduty, alertmanager`},
		"pagerduty":            {`groups: [{name: g, rules: [], receivers: [{name: x, form: pagerduty, routing_key: R0123456789}]}]`, ""},
		"pagerduty without":    {`groups: [{name: g, rules: [], receivers: [{name: x, form: pagerduty}]}]`, "needs routing_key"},
		"a key for another":    {`groups: [{name: g, rules: [], receivers: [{name: x, url: "https://h.example.com/", routing_key: R0123456789}]}]`, "routing_key is for the form pagerduty"},
		"a hidden key":         {`groups: [{name: g, rules: [], receivers: [{name: x, form: pagerduty, routing_key: xxxxx}]}]`, "give the whole"},
		"a hidden URL":         {`groups: [{name: g, rules: [], receivers: [{name: x, url: "https://h.example.com/xxxxx"}]}]`, "give the whole"},
		"alertmanager":         {`groups: [{name: g, rules: [], receivers: [{name: x, url: "http://am:9093/api/v2/alerts", form: alertmanager}]}]`, ""},
		"its root":             {`groups: [{name: g, rules: [], receivers: [{name: x, url: "http://am:9093", form: alertmanager}]}]`, "ends in /api/v2/alerts"},
		"a label that varies":  {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, labels: {n: "{{ $value }}"}}], receivers: [{name: x, url: "http://am:9093/api/v2/alerts", form: alertmanager}]}]`, `label "n" has the value`},
		"told to another":      {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, notify: [y], labels: {n: "{{ $value }}"}}], receivers: [{name: x, url: "http://am:9093/api/v2/alerts", form: alertmanager}, {name: y, url: "http://y.example.com"}]}]`, ""},
		"a large group":        {`groups: [{name: g, rules: [{alert: A, topic: app, silence: 1m, where: "` + strings.Repeat("x", MaxGroupBytes) + `"}]}]`, "Make several groups"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			if c.says == "" && err != nil || c.says != "" && (!errors.Is(err, ErrRule) || !errors.Is(err, schemas.ErrRequest) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("it says %v, want %q", err, c.says)
			}
		})
	}
	if _, err := Parse(make([]byte, MaxFileBytes+1)); err == nil || !strings.Contains(err.Error(), "the limit is") {
		t.Errorf("a file that is too large: %v", err)
	}
}

// TestExample holds that the example is good, and means what it says.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../deploy/alerts/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	groups, err := Parse(text)
	if err != nil || len(groups) != 1 || len(groups[0].Rules) != 3 || len(groups[0].Receivers) != 1 {
		t.Fatalf("%+v, %v", groups, err)
	}
	for i, want := range []decide.Rule{
		{Condition: decide.Condition{Op: ">=", Limit: 5}, Grouped: true},
		{Condition: decide.Condition{Op: ">", Limit: 100}, Grouped: true, For: 2 * time.Minute},
		{Condition: decide.Condition{Op: "<", Limit: 1}},
	} {
		if got := groups[0].Rules[i].Decided(); got != want {
			t.Errorf("rule %d is evaluated as %+v, want %+v", i, got, want)
		}
	}
	if w := groups[0].Rules[2].Span(); w != 15*time.Minute {
		t.Errorf("the silence is of %s", w)
	}
}

// TestSum holds that what a rule means has one name, whatever it says besides.
func TestSum(t *testing.T) {
	r := Rule{Alert: "A", Topic: "app", Window: Span(time.Minute), Condition: "> 1"}
	said, meant := r, r
	said.Labels, said.Annotations, said.Notify = map[string]string{"a": "b"}, map[string]string{"a": "b"}, []string{"x"}
	meant.Condition = "> 2"
	if r.Sum() != said.Sum() || r.Sum() == meant.Sum() {
		t.Errorf("sums %s, %s with other labels, %s with another condition", r.Sum(), said.Sum(), meant.Sum())
	}
}

func manyLabels(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("x%d: a", i)
	}
	return strings.Join(all, ", ")
}

// Calls to a receiver are signed by one secret, whichever groups have it.
func TestReceiversOfSeveralGroups(t *testing.T) {
	t.Parallel()
	group := func(name string, receivers ...Receiver) *Group { return &Group{Name: name, Receivers: receivers} }
	for name, c := range map[string]struct {
		groups []*Group
		says   []string // nil: they may be beside each other
	}{
		"one secret":          {[]*Group{group("a", Receiver{Name: "ops", URL: "https://x", Secret: "s"}), group("b", Receiver{Name: "ops", URL: "https://y", Secret: "s"})}, nil},
		"other names":         {[]*Group{group("a", Receiver{Name: "ops", URL: "https://x", Secret: "s"}), group("b", Receiver{Name: "dev", URL: "https://x", Secret: "t"})}, nil},
		"two secrets":         {[]*Group{group("a", Receiver{Name: "ops", URL: "https://x", Secret: "s"}), group("b", Receiver{Name: "dev", URL: "https://x", Secret: "t"}, Receiver{Name: "ops", URL: "https://x", Secret: "t"})}, []string{`"ops"`, `"s" in group "a"`, `"t" in group "b"`}},
		"one lacks one":       {[]*Group{group("a", Receiver{Name: "ops", URL: "https://x", Secret: ""}), group("b", Receiver{Name: "ops", URL: "https://x", Secret: "t"})}, []string{`"" in group "a"`}},
		"the other lacks one": {[]*Group{group("a", Receiver{Name: "ops", URL: "https://x", Secret: "s"}), group("b", Receiver{Name: "ops", URL: "https://x", Secret: ""})}, []string{`"" in group "b"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := map[string]*Group{}
			for _, g := range c.groups {
				all[g.Name] = g
			}
			err := oneSecret(all)
			if (err == nil) != (c.says == nil) || err != nil && !errors.Is(err, ErrRule) {
				t.Fatalf("%v, want %q", err, c.says)
			}
			for _, want := range c.says {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %s", err, want)
				}
			}
		})
	}
}
