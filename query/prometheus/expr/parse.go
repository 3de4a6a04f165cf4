package expr

import (
	"fmt"
	"regexp/syntax"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/util/strutil"

	"github.com/almanac-events/almanac/internal/patterns"
)

// Bounds of an expression: what it costs to parse and prepare ends with no context.
const (
	// maxTokens bounds its words and signs. The engine's work grows with the square of their depth:
	// 10,000 take 2 s, 200,000 parentheses minutes.
	maxTokens = 10_000
	// maxRepeated bounds what repetitions add to regular expressions: [a-z]{1000} is 1,000 instructions of
	// some 50 bytes, and a form has room for 50 million.
	maxRepeated = 250_000
)

// Parser reads expressions and selectors, and refuses what takes too much to parse.
func Parser() parser.Parser { return boundedParser{parser.NewParser(parser.Options{})} }

// boundedParser refuses what takes too much to parse.
type boundedParser struct{ parser.Parser }

// ParseExpr implements parser.Parser.
func (p boundedParser) ParseExpr(input string) (parser.Expr, error) {
	if err := bound(input); err != nil {
		return nil, err
	}
	return p.Parser.ParseExpr(input)
}

// ParseMetricSelectors implements parser.Parser.
func (p boundedParser) ParseMetricSelectors(inputs []string) ([][]*labels.Matcher, error) {
	if err := bound(inputs...); err != nil {
		return nil, err
	}
	return p.Parser.ParseMetricSelectors(inputs)
}

// bound refuses expressions that together are too large.
func bound(inputs ...string) error {
	tokens, repeated := 0, 0
	for _, input := range inputs {
		lexer := parser.Lex(input)
		for {
			var item parser.Item
			lexer.NextItem(&item)
			if item.Typ == parser.EOF || item.Typ == parser.ERROR { // of which the parser says more
				break
			}
			if tokens++; tokens > maxTokens {
				return fmt.Errorf("the expression has more than %d words and signs; ask in several queries", maxTokens)
			}
			if item.Typ != parser.STRING {
				continue
			}
			if repeated += repetitions(item.Val); repeated > maxRepeated {
				return fmt.Errorf("the repetitions of its regular expressions come to more than %d instructions; lower the numbers in {}", maxRepeated)
			}
		}
	}
	return nil
}

// repetitions is how many instructions a text in quotes has as a regular expression beyond its length.
func repetitions(quoted string) int {
	text, err := strutil.Unquote(quoted)
	if err != nil {
		return 0
	}
	return patterns.Repeated(text, syntax.Perl|syntax.DotNL)
}
