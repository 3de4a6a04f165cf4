package schemas

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestPastKeep(t *testing.T) {
	topic := NewTopic("app")
	topic.KeepDays = 30
	end := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC) // of February
	for name, c := range map[string]struct {
		keep int
		at   time.Time
		past bool
	}{
		"the last instant":          {30, end.AddDate(0, 0, 30).Add(-1), false},
		"an instant later":          {30, end.AddDate(0, 0, 30), true},
		"in another zone":           {30, end.AddDate(0, 0, 30).In(time.FixedZone("", -3600*11)), true},
		"forever":                   {0, end.AddDate(100, 0, 0), false},
		"a month that is to come":   {1, end.AddDate(0, -6, 0), false},
		"a hundred years, no wrap":  {MaxKeepDays, end.AddDate(50, 0, 0), false},
		"the month is past in part": {1, end.Add(-time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			topic.KeepDays = c.keep
			if got := topic.PastKeep(202602, c.at); got != c.past {
				t.Errorf("%s: %t", name, got)
			}
			err := topic.CheckKeep(202602, c.at)
			if c.past != errors.Is(err, ErrPastRetention) || c.past && (Reason(err) != "past-retention" || !strings.Contains(err.Error(), "2026-02") || !strings.Contains(err.Error(), "30 days")) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestValidateRetention(t *testing.T) {
	anonymise := func(days int, fields ...string) Anonymise { return Anonymise{AfterDays: days, Fields: fields} }
	for name, c := range map[string]struct {
		keep int
		a    Anonymise
		text string
	}{
		"neither":           {0, Anonymise{}, ""},
		"both":              {90, anonymise(30, "user_id", "ip", "attributes.geo.city", "attributes"), ""},
		"negative keep":     {-1, Anonymise{}, "keep_days is -1"},
		"keep beyond sense": {MaxKeepDays + 1, Anonymise{}, "keep_days is 36501"},
		"negative":          {0, anonymise(-1, "ip"), "after_days is -1"},
		"no fields":         {0, anonymise(30), "names no fields"},
		"no days":           {0, anonymise(0, "ip"), "no after_days"},
		"never reached":     {30, anonymise(30, "ip"), "nothing would ever be anonymised"},
		"the id":            {0, anonymise(30, "id"), `"id" cannot be cleared`},
		"the time":          {0, anonymise(30, "ts"), `"ts" cannot be cleared`},
		"an attribute ts":   {0, anonymise(30, "attributes.ts"), ""},
		"no name":           {0, anonymise(30, "attributes."), "1 to 256 bytes"},
		"empty":             {0, anonymise(30, ""), "1 to 256 bytes"},
		"twice":             {0, anonymise(30, "ip", "ip"), "twice"},
	} {
		t.Run(name, func(t *testing.T) {
			topic := NewTopic("app")
			topic.KeepDays, topic.Anonymise = c.keep, c.a
			err := topic.Validate()
			if (c.text == "") != (err == nil) || err != nil && (!errors.Is(err, ErrTopic) || !strings.Contains(err.Error(), c.text)) {
				t.Errorf("%s: %v, want %q", name, err, c.text)
			}
		})
	}
}

func TestTightens(t *testing.T) {
	topic := func(keep, after int, fields ...string) *Topic {
		t := NewTopic("app")
		t.KeepDays, t.Anonymise = keep, Anonymise{AfterDays: after, Fields: fields}
		return &t
	}
	for name, c := range map[string]struct {
		now, then *Topic
		want      bool
	}{
		"nothing":            {topic(30, 7, "ip"), topic(30, 7, "ip"), false},
		"keep begins":        {topic(0, 0), topic(30, 0), true},
		"keep shorter":       {topic(30, 0), topic(29, 0), true},
		"keep longer":        {topic(30, 0), topic(31, 0), false},
		"keep ends":          {topic(30, 0), topic(0, 0), false},
		"anonymise begins":   {topic(0, 0), topic(0, 7, "ip"), true},
		"anonymise sooner":   {topic(0, 7, "ip"), topic(0, 6, "ip"), true},
		"a field more":       {topic(0, 7, "ip"), topic(0, 7, "ip", "user_id"), true},
		"a field less":       {topic(0, 7, "ip", "user_id"), topic(0, 7, "ip"), false},
		"anonymise ends":     {topic(0, 7, "ip"), topic(0, 0), false},
		"longer, and sooner": {topic(30, 7, "ip"), topic(60, 6, "ip"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.now.Tightens(c.then); got != c.want {
				t.Errorf("%s: %t", name, got)
			}
		})
	}
}
