package patterns

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// MaxRepeated bounds the instructions that repetitions add to an expression which is run over events: a line of 64 KiB
// then takes a second or two at worst, and every use of a repetition that is known has some hundreds.
const MaxRepeated = 2000

// ErrLarge: an expression takes too long to match.
var ErrLarge = errors.New("too large a regular expression")

// TooLarge returns what an expression is refused with whose repetitions add more than a bound.
func TooLarge(most int) error {
	return fmt.Errorf("%w: its repetitions add more than %d instructions; lower the numbers in {}", ErrLarge, most)
}

// Compile compiles an expression that a client sent.
func Compile(text string) (*regexp.Regexp, error) {
	if Repeated(text, syntax.Perl) > MaxRepeated {
		return nil, TooLarge(MaxRepeated)
	}
	return regexp.Compile(text)
}

// Repeated returns about how many instructions a text has as an expression beyond its length. A text that is not an
// expression adds nothing.
func Repeated(text string, flags syntax.Flags) int {
	re, err := syntax.Parse(text, flags)
	if err != nil {
		return 0
	}
	return max(0, instructions(re)-len(text))
}

// instructions is about how many instructions a compiled expression has.
func instructions(re *syntax.Regexp) int {
	n := 1
	switch re.Op {
	case syntax.OpLiteral:
		n = len(re.Rune)
	case syntax.OpCharClass:
		n = 1 + len(re.Rune)/10 // as many bytes as one
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return n
}
