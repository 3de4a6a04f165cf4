package expr

import (
	"strings"
	"testing"
)

// What would take minutes or gigabytes to parse is refused, and what people write is not.
func TestBoundedParser(t *testing.T) {
	t.Parallel()
	hosts := strings.Repeat("some-host-name.example|", 10_000)
	for name, c := range map[string]struct{ expr, says string }{
		"a long alternation":                   {`up{host=~"` + hosts + `x"}`, ""},
		"repetitions":                          {`up{host=~"[a-z]{1,63}(\\.[a-z]{1,63}){3}"}`, ""},
		"many sums":                            {"1" + strings.Repeat(" + 1", 2000), ""},
		"not closed":                           {`up{host=~"a`, "unterminated quoted string"},
		"a regular expression that is not one": {`up{host=~"(a{1000}){1000}"}`, "invalid repeat count"},
		"parentheses":                          {strings.Repeat("(", 6000) + "1" + strings.Repeat(")", 6000), "more than 10000 words and signs"},
		"signs":                                {strings.Repeat("-", 20_000) + "1", "more than 10000 words and signs"},
		"a large repetition":                   {`{a=~"` + strings.Repeat("[a-z]{1000}", 300) + `"}`, "repetitions of its regular expressions"},
		"repetitions of many matchers":         {`{a=~"x"` + strings.Repeat(`,a=~"(abc){900}"`, 100) + `}`, "repetitions of its regular expressions"},
		"in a function":                        {`label_replace(up, "a", "b", "c", "` + strings.Repeat("(abc){900}", 100) + `")`, "repetitions of its regular expressions"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Parser()
			_, err := p.ParseExpr(c.expr)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, expected %q", err, c.says)
			}
		})
	}
	p := Parser()
	all := make([]string, 100)
	for i := range all {
		all[i] = `{a=~"x(abc){900}"}`
	}
	if _, err := p.ParseMetricSelectors(all); err == nil || !strings.Contains(err.Error(), "repetitions of its regular expressions") {
		t.Errorf("of selectors: %v", err)
	}
	if _, err := p.ParseMetricSelectors(all[:9]); err != nil {
		t.Error(err)
	}
}
