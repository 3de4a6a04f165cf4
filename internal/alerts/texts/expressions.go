package texts

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"text/template/parse"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"

	"github.com/almanac-events/almanac/internal/patterns"
)

// Bounds of one match. Annotations of one alert may have a hundred.
const (
	maxPattern  = 256
	maxRepeated = 200
	maxMatched  = 4 << 10
)

// title makes the first letter of each word a capital, and leaves the others.
func title(text string) string {
	return cases.Title(language.AmericanEnglish, cases.NoLower).String(text) // it has a state: one for each call
}

func match(pattern, text string) (bool, error) {
	re, err := expression(pattern, text)
	if err != nil {
		return false, err
	}
	return re.MatchString(text), nil
}

// replaceAll is ReplaceAllString that ends where the result is longer than a text may be.
func replaceAll(pattern, by, text string) (string, error) {
	if len(by) > maxMatched {
		return "", fmt.Errorf("a replacement has %d bytes, at most %d", len(by), maxMatched)
	}
	re, err := expression(pattern, text)
	if err != nil {
		return "", err
	}
	var out []byte
	end := 0
	for _, found := range re.FindAllStringSubmatchIndex(text, -1) {
		out = append(out, text[end:found[0]]...)
		out = re.ExpandString(out, by, text, found)
		if end = found[1]; len(out) > maxFilled {
			return "", errFilled
		}
	}
	return string(append(out, text[end:]...)), nil
}

// expression compiles a pattern that is to be matched with a text.
func expression(pattern, text string) (*regexp.Regexp, error) {
	switch {
	case len(pattern) > maxPattern:
		return nil, fmt.Errorf("a regular expression has %d bytes; the limit is %d", len(pattern), maxPattern)
	case len(text) > maxMatched:
		return nil, fmt.Errorf("a text to match has %d bytes; the limit is %d", len(text), maxMatched)
	case patterns.Repeated(pattern, syntax.Perl) > maxRepeated:
		return nil, fmt.Errorf("the regular expression %.40q repeats too much; the limit is some %d repetitions", pattern, maxRepeated)
	}
	return regexp.Compile(pattern)
}

// badPattern refuses a call that names its regular expression, and not a good one.
func badPattern(c *parse.CommandNode) error {
	if len(c.Args) < 2 {
		return nil
	}
	name, ok := c.Args[0].(*parse.IdentifierNode)
	if !ok || name.Ident != "match" && name.Ident != "reReplaceAll" {
		return nil
	}
	pattern, ok := c.Args[1].(*parse.StringNode)
	if !ok {
		return nil
	}
	if _, err := expression(pattern.Text, ""); err != nil {
		return fmt.Errorf("%s: %w", name.Ident, err)
	}
	return nil
}
