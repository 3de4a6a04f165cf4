package operations

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Param is one parameter of an operation.
type Param struct {
	Name string
	In   In
	Kind Kind
	// Flag is its name on the command line; empty: the same with dashes. Letter is its short form there, and Bare what
	// counts where it is given without a value.
	Flag, Letter, Bare string
	// Again: the command line takes Names several times too.
	Again bool
	// Default is what counts where it is not given; empty: nothing, or what Help says.
	Default string
	// Help says what it is, at every door. A word in backticks stands for the value, as flags have it.
	Help string
	// Note is what else there is to say of it over HTTP.
	Note string
	// Words are the values that there are. The first of a Word is its default.
	Words []string
	// Least and Most bound a Number.
	Least, Most int
	// Required: the operation refuses to be without.
	Required bool
	// Empty: an empty value means something.
	Empty   bool
	Example string
	// MaxBytes bounds a text; 0: it is not bounded here.
	MaxBytes int
}

// In is where a request has a parameter.
type In int

// Where a parameter may be.
const (
	Query In = iota
	Path
	Header
)

// Kind is the type of a parameter.
type Kind int

const (
	// Text is any text.
	Text Kind = iota
	// Texts is a text that may be given several times.
	Texts
	// Number is a whole number from Least to Most.
	Number
	// Token is the token of a lock.
	Token
	// Time is a point in time: RFC 3339, a date, now, or a distance back.
	Time
	// End is a time at which a range ends.
	End
	// Span is a length of time.
	Span
	// Wait is a length of time that may be 0.
	Wait
	// Switch is true where it is given without a value.
	Switch
	// Word is one of Words.
	Word
	// Names are names with commas between.
	Names

	// Kinds that the command line alone has: any whole number, one from 0 on, one with a fraction, several, and a length of
	// time as Go writes it.
	Signed
	Amount
	Fraction
	Numbers
	Length
)

// flagInText is a flag that a help text names.
var flagInText = regexp.MustCompile(`--[a-z][a-z0-9-]*`)

// Description is the help text as a sentence. A flag that it names is the parameter.
func (p *Param) Description() string {
	text := p.Help
	if before, rest, ok := strings.Cut(text, "`"); ok {
		name, after, _ := strings.Cut(rest, "`")
		text = before + strings.ToLower(name) + after
	}
	text = flagInText.ReplaceAllStringFunc(text, func(flag string) string { return strings.ReplaceAll(flag[2:], "-", "_") }) + p.Note
	first, n := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[n:]
}

// FlagName is its name on the command line.
func (p *Param) FlagName() string {
	if p.Flag != "" {
		return p.Flag
	}
	return strings.ReplaceAll(p.Name, "_", "-")
}

// counts is a parameter that is a number where it is not given.
func counts(p Param, n int) Param {
	p.Default = strconv.Itoa(n)
	return p
}

// required is a parameter that must be given.
func required(p Param) Param {
	p.Required = true
	return p
}

// flagged is a parameter with another name on the command line.
func flagged(p Param, flag string) Param {
	p.Flag = flag
	return p
}

// helped is a parameter with another help text.
func helped(p Param, help string) Param {
	p.Help = help
	return p
}

// named is a parameter under another name.
func named(p Param, name string) Param {
	p.Name = name
	return p
}
