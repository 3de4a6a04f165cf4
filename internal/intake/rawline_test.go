package intake

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// The raw line is dropped on request, and said to keep what a rule
// takes out; a field under a rule cannot become the user in clear.
func TestRawLineIsDroppedOnRequest(t *testing.T) {
	topic := schemas.NewTopic("app")
	topic.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}, {Field: "user_id", Rule: schemas.PrivacyHash}}
	o := Options{Format: FormatText, Extract: regexp.MustCompile(`from (?P<email>\S+) (?P<host>\S+)`), UserRegex: regexp.MustCompile(`u=(\S+)`), Topic: &topic}
	if got := o.RawKeeps(); strings.Join(got, ",") != "email,user_id" {
		t.Errorf("kept: %v", got)
	}
	o.DropRaw = true
	if got := o.RawKeeps(); got != nil {
		t.Errorf("kept: %v", got)
	}
	r := NewReader(strings.NewReader("from a@b h u=7\nno match a@b\n"), o)
	rec, err := r.Next()
	if got := show(rec); err != nil || got != `1+1 user="7" [email]="a@b" [host]="h"` {
		t.Errorf("%s, %v", got, err)
	}
	if rec, _ := r.Next(); !errors.Is(rec.Err, ErrSyntax) || rec.Event.Message != "" {
		t.Errorf("%+v", rec)
	}
	if err := (&Options{Format: FormatText, DropRaw: true}).Validate(); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
	topic.PII = topic.PII[:1]
	for _, name := range []string{"email", "Email", "email.home"} {
		o = Options{Format: FormatNDJSON, UserField: name, Topic: &topic}
		if err := o.Validate(); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "Declare a rule for user_id") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Headers of CSV and keys of logfmt are names like any other.
func TestRulesHoldInEveryFormat(t *testing.T) {
	topic := schemas.NewTopic("app")
	topic.PII = []schemas.Private{{Field: "email", Rule: schemas.PrivacyDrop}, {Field: "user_id", Rule: schemas.PrivacyHash}}
	for format, input := range map[string]string{
		FormatCSV:    "\xef\xbb\xbfwho, Email,email,EMAIL.home\nCLEAR,CLEAR,CLEAR,CLEAR\n",
		FormatLogfmt: "who=CLEAR email=CLEAR email=CLEAR attributes.email=CLEAR",
		FormatNDJSON: `{"who":"CLEAR","who":"CLEAR","attributes":{"email":"CLEAR"}}`,
	} {
		rec, err := NewReader(strings.NewReader(input), Options{Format: format, UserField: "who", Topic: &topic}).Next()
		if err != nil || rec.Err != nil {
			t.Fatal(format, err, rec.Err)
		}
		privacy.New(&topic, []byte("0123456789abcdef")).Apply(&rec.Event)
		if got := show(rec); strings.Contains(got, "CLEAR") || rec.Event.UserID == "" {
			t.Errorf("%s: %s", format, got)
		}
	}
}
