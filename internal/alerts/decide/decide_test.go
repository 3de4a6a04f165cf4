package decide

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const second = int64(time.Second)

func TestDecide(t *testing.T) {
	for name, c := range map[string]struct {
		rule Rule
		met  string // an instant each: + met, - not
		want []string
	}{
		"at once":                      {Rule{}, "-+", []string{"2 firing"}},
		"and it ends":                  {Rule{}, "-++--", []string{"2 firing", "4 inactive"}},
		"and begins again":             {Rule{}, "+-+", []string{"1 firing", "2 inactive", "3 firing"}},
		"never met":                    {Rule{}, "---", nil},
		"for two seconds":              {Rule{For: 2 * time.Second}, "++++", []string{"1 pending", "3 firing"}},
		"too short":                    {Rule{For: 2 * time.Second}, "++-+++", []string{"1 pending", "3 inactive", "4 pending", "6 firing"}},
		"kept":                         {Rule{Keep: 2 * time.Second}, "+-+--", []string{"1 firing", "5 inactive"}},
		"kept and for":                 {Rule{For: time.Second, Keep: time.Second}, "++--+", []string{"1 pending", "2 firing", "3 inactive", "5 pending"}},
		"a pending one is not kept up": {Rule{For: 5 * time.Second, Keep: 5 * time.Second}, "+-", []string{"1 pending", "2 inactive"}},
	} {
		t.Run(name, func(t *testing.T) {
			alerts := map[string]Alert{}
			var got []string
			for i, m := range c.met {
				for _, tr := range c.rule.Decide(int64(i+1)*second, map[string]Sample{"u": {1, m == '+'}}, alerts) {
					got = append(got, fmt.Sprint(tr.At/second, " ", tr.To))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestDecidedAgain holds that a run which begins again at any earlier instant, with the alerts as they are, makes
// the transitions that one run makes, each once.
func TestDecidedAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := Rule{
			For:  time.Duration(rapid.IntRange(0, 3).Draw(t, "for")) * time.Second,
			Keep: time.Duration(rapid.IntRange(0, 3).Draw(t, "keep")) * time.Second,
		}
		window := time.Duration(rapid.IntRange(1, 6).Draw(t, "window")) * time.Second
		least := uint64(rapid.IntRange(1, 4).Draw(t, "least"))
		type arrival struct {
			group string
			at    int64
		}
		var all []arrival
		for range rapid.IntRange(0, 30).Draw(t, "events") {
			all = append(all, arrival{rapid.SampledFrom([]string{"a", "b"}).Draw(t, "group"), rapid.Int64Range(1, 30*second).Draw(t, "at")})
		}
		const end = 45
		run := func(from, to int64, alerts map[string]Alert) (made []Transition) {
			s := NewSeries(window)
			for _, a := range all { // in whatever order they come
				if Instant(a.at) > from*second-int64(window) {
					s.Add(a.group, a.at, 1)
				}
			}
			for at := from; at <= to; at++ {
				samples := map[string]Sample{}
				s.Counts(at*second, func(g string, n uint64) { samples[g] = Sample{float64(n), n >= least} })
				made = append(made, rule.Decide(at*second, samples, alerts)...)
			}
			return made
		}
		whole := map[string]Alert{}
		want := run(1, end, whole)
		alerts := map[string]Alert{}
		dies := rapid.Int64Range(1, end).Draw(t, "dies")
		got := run(1, dies, alerts)
		again := rapid.Int64Range(1, dies).Draw(t, "again")
		if rule.Keep > 0 {
			again = dies // Met is of the last instant that was evaluated: what is evaluated again may only be later
		}
		got = append(got, run(again, end, alerts)...)
		if !reflect.DeepEqual(got, want) || !maps.Equal(alerts, whole) {
			t.Fatalf("again from %d after %d: %+v\nwant %+v", again, dies, got, want)
		}
	})
}

// TestCounts compares the count of a window with one by hand.
func TestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := rapid.Int64Range(1, 300).Draw(t, "window")
		s := NewSeries(time.Duration(window) * time.Second)
		var times []int64
		for range rapid.IntRange(0, 40).Draw(t, "events") {
			at := rapid.Int64Range(1, 600*second).Draw(t, "at")
			times = append(times, at)
			s.Add("g", at, 1)
		}
		for at := rapid.Int64Range(0, 100).Draw(t, "from"); at <= 700; at += rapid.Int64Range(1, 50).Draw(t, "step") {
			want, got := uint64(0), uint64(0)
			for _, ns := range times {
				if ns <= at*second && Instant(ns) > (at-window)*second {
					want++
				}
			}
			s.Counts(at*second, func(_ string, n uint64) { got = n })
			if got != want {
				t.Fatalf("at %d over %d s: %d, want %d", at, window, got, want)
			}
		}
	})
}

func TestGroupsAreBounded(t *testing.T) {
	s := NewSeries(time.Minute)
	for i := range MaxGroups + 5 {
		s.Add(fmt.Sprint(i), second, 2)
	}
	if s.Groups() != MaxGroups || s.Left != 10 {
		t.Errorf("%d groups, %d events left out", s.Groups(), s.Left)
	}
	s.Counts(100*second, func(string, uint64) {})
	if s.Groups() != 0 {
		t.Errorf("%d groups are left behind the window", s.Groups())
	}
}

// TestUntil holds that no time that is gone by lies after the instant, and that when an alert that fires began stays.
func TestUntil(t *testing.T) {
	for _, c := range []struct{ was, want Alert }{
		{Alert{Firing, 3, 7, 6}, Alert{Firing, 3, 5, 5}},
		{Alert{Firing, 6, 7, 7}, Alert{Firing, 6, 5, 5}},
		{Alert{Pending, 6, 7, 6}, Alert{Pending, 5, 5, 5}},
		{Alert{Pending, 2, 4, 2}, Alert{Pending, 2, 4, 2}},
	} {
		if got := c.was.Until(5); got != c.want {
			t.Errorf("%+v became %+v, want %+v", c.was, got, c.want)
		}
	}
}

func TestForget(t *testing.T) {
	alerts := map[string]Alert{"old": {State: Inactive, At: 1}, "new": {State: Inactive, At: 9}, "firing": {State: Firing, At: 1}}
	Forget(alerts, 5)
	if len(alerts) != 2 || alerts["old"].At != 0 {
		t.Errorf("left: %v", alerts)
	}
}

func TestSilence(t *testing.T) {
	for name, grouped := range map[string]bool{"of all": false, "of a group": true} {
		t.Run(name, func(t *testing.T) {
			rule := Rule{Condition: Condition{"<", 1}, Grouped: grouped}
			group := ""
			if grouped {
				group = "db"
			}
			s, alerts := NewSeries(3*time.Second), map[string]Alert{}
			s.Add(group, 2*second, 1)
			s.Add(group, 9*second, 1)
			var got []string
			for at := int64(2); at <= 14; at++ {
				for _, tr := range rule.Decide(at*second, rule.Sample(s, at*second, alerts), alerts) {
					got = append(got, fmt.Sprint(tr.At/second, " ", tr.To))
				}
			}
			if want := []string{"5 firing", "9 inactive", "12 firing"}; !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestCondition(t *testing.T) {
	for op, want := range map[string][3]bool{
		">=": {false, true, true}, "<=": {true, true, false}, "==": {false, true, false},
		"!=": {true, false, true}, ">": {false, false, true}, "<": {true, false, false}, "=": {},
	} {
		for i, v := range []float64{4, 5, 6} {
			if got := (Condition{op, 5}).Met(v); got != want[i] {
				t.Errorf("%v %s 5 is %v", v, op, got)
			}
		}
	}
}
