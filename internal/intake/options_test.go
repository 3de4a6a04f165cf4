package intake

import (
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	rx := regexp.MustCompile
	for _, c := range []struct {
		opts Options
		want string // "" is fine
	}{
		{Options{Format: "text"}, ""},
		{Options{Format: "csv", TsField: "a b", UserField: "c", TsFormat: "02.01.2006 15:04"}, ""},
		{Options{Format: "text", Extract: rx(`(?P<when>\S+) (?P<who>\S+)`), TsField: "when", UserField: "who"}, ""},
		{Options{Format: "text", TsFormat: "syslog", Year: 2019}, ""},
		{Options{Format: "text", TsFormat: "syslog", Now: now}, ""},
		{Options{}, `format is "", it must be one of text, ndjson, json, logfmt, csv`},
		{Options{Format: "xml"}, `format is "xml"`},
		{Options{Format: "csv", Multiline: rx("x")}, "multiline is for format text, the format is csv"},
		{Options{Format: "ndjson", UserRegex: rx("(x)")}, "user regex is for format text"},
		{Options{Format: "ndjson", Extract: rx("(?P<a>x)")}, "extract is for format text"},
		{Options{Format: "text", UserRegex: rx("(x)(y)")}, "has 2 groups, it must have one"},
		{Options{Format: "text", UserRegex: rx("x")}, "has 0 groups, it must have one"},
		{Options{Format: "text", Extract: rx("(x)")}, "no named group"},
		{Options{Format: "text", TsField: "ts"}, `ts field is "ts", which is not a named group`},
		{Options{Format: "text", UserField: "u"}, `user field is "u", which is not a named group`},
		{Options{Format: "text", MaxRecordBytes: -1}, "max record bytes is -1"},
		{Options{Format: "text", Year: 19}, "year is 19, it must be 1970 to 2261"},
		{Options{Format: "text", TsFormat: "rfc33339"}, `it must be one of rfc3339, unix, unix_ms`},
		{Options{Format: "text", TsFormat: "03:04 2006-01-02"}, `ts format is "03:04 2006-01-02"`}, // no AM or PM
		{Options{Format: "text", TsFormat: "15:04:05"}, `ts format is "15:04:05"`},
		{Options{Format: "text", TsFormat: "syslog"}, "have no year"},
		{Options{Format: "csv", TsFormat: "Jan 2 15:04"}, "have no year"},
	} {
		err := c.opts.Validate()
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		if _, nextErr := NewReader(strings.NewReader("x"), c.opts).Next(); err != nil && !errors.Is(nextErr, ErrOptions) {
			t.Errorf("%v, but Next says %v", err, nextErr)
		}
	}
}
