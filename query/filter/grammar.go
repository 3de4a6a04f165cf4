package filter

import (
	"errors"
	"fmt"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// The tokens. A dotted name is one token, so that attributes.a-b.c needs no
// quotes; a keyword is only one where no name goes on after it.
var tokens = lexer.MustSimple([]lexer.SimpleRule{
	{Name: "Space", Pattern: `[\s]+`},
	{Name: "Keyword", Pattern: `(?i)(AND|OR|NOT|IN|CONTAINS|MATCHES|EXISTS|TRUE|FALSE)\b`},
	{Name: "Name", Pattern: `[A-Za-z_@][A-Za-z0-9_@]*(\.[A-Za-z0-9_@$:/#-]+)*`},
	{Name: "Quoted", Pattern: "`[^`]*`"},
	{Name: "Text", Pattern: `'(\\[\s\S]|[^'\\])*'|"(\\[\s\S]|[^"\\])*"`},
	{Name: "Relative", Pattern: `-(\d+(ns|us|ms|s|m|h|d|w))+\b`},
	{Name: "Number", Pattern: `[-+]?\d+(\.\d+)?([eE][-+]?\d+)?\b`},
	{Name: "Op", Pattern: `!=|<=|>=|==?|<|>`},
	{Name: "Punct", Pattern: `[()\[\],]`},
})

// The grammar, as the package comment has it. Chains are repetitions, so that
// only parentheses recurse, and those are counted before (checkNesting).
type (
	orTerm struct {
		Terms []*andTerm `parser:"@@ ( 'OR' @@ )*"`
	}
	andTerm struct {
		Terms []*notTerm `parser:"@@ ( 'AND' @@ )*"`
	}
	notTerm struct {
		Nots    []string    `parser:"@'NOT'*"`
		Group   *orTerm     `parser:"( '(' @@ ')'"`
		Exists  *fieldTerm  `parser:"| 'EXISTS' @@"`
		Compare *comparison `parser:"| @@ )"`
	}
	comparison struct {
		Field *fieldTerm `parser:"@@"`
		Op    *opTerm    `parser:"( @@"`
		Value *literal   `parser:"  @@"`
		Not   bool       `parser:"| @'NOT'?"`
		List  []*literal `parser:"  'IN' '(' @@ ( ',' @@ )* ')' )"`
	}
	opTerm struct {
		Pos  lexer.Position
		Word string `parser:"@Op | @'CONTAINS' | @'MATCHES'"`
	}
	fieldTerm struct {
		Pos  lexer.Position
		Name string  `parser:"@( Name | Quoted )"`
		Key  *string `parser:"( '[' @Text ']' )?"`
	}
	literal struct {
		Pos      lexer.Position
		Text     *string `parser:"  @Text"`
		Number   *string `parser:"| @Number"`
		Bool     *string `parser:"| @( 'TRUE' | 'FALSE' )"`
		Relative *string `parser:"| @Relative"`
	}
)

var grammar = participle.MustBuild[orTerm](
	participle.Lexer(tokens),
	participle.Elide("Space"),
	participle.CaseInsensitive("Keyword"),
	participle.UseLookahead(2),
)

// Bounds of a filter. Beyond them it is a program, not a question; and every
// value is a parameter in a URL.
const (
	// MaxFilterBytes bounds the text.
	MaxFilterBytes = 16 << 10
	// MaxNesting bounds parentheses within parentheses.
	MaxNesting = 64
	// MaxList bounds the values of one IN.
	MaxList = 1000
)

func parseText(src string) (*orTerm, error) {
	if len(src) > MaxFilterBytes {
		return nil, &Error{Src: src, Column: 1, Kind: ErrTooLarge,
			Msg: fmt.Sprintf("it has %d bytes, the limit is %d", len(src), MaxFilterBytes)}
	}
	if err := checkNesting(src); err != nil {
		return nil, err
	}
	tree, err := grammar.ParseString("", src)
	if err != nil {
		return nil, syntaxError(src, err)
	}
	return tree, nil
}

// checkNesting counts parentheses before anything recurses over them.
func checkNesting(src string) error {
	lex, err := tokens.LexString("", src)
	if err != nil {
		return syntaxError(src, err)
	}
	for depth := 0; ; {
		t, err := lex.Next()
		if err != nil {
			return syntaxError(src, err)
		}
		switch {
		case t.EOF():
			return nil
		case t.Value == "(":
			depth++
		case t.Value == ")":
			depth--
		}
		if depth > MaxNesting {
			return &Error{Src: src, Column: columnAt(src, t.Pos.Offset), Kind: ErrTooLarge,
				Msg: fmt.Sprintf("parentheses are nested deeper than %d", MaxNesting)}
		}
	}
}

// syntaxError says what a person can do about an error of the parser.
func syntaxError(src string, err error) error {
	e := &Error{Src: src, Column: 1, Kind: ErrSyntax, Msg: err.Error()}
	var at participle.Error
	if !errors.As(err, &at) {
		return e
	}
	offset := at.Position().Offset
	e.Column, e.Msg = columnAt(src, offset), at.Message()
	var unexpected *participle.UnexpectedTokenError
	switch rest := src[min(offset, len(src)):]; {
	case strings.HasPrefix(rest, "'"), strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, "`"):
		if !errors.As(err, &unexpected) {
			e.Msg = "this quote is never closed"
			break
		}
		e.Msg = fmt.Sprintf("unexpected text %s; a comparison begins with a field: level = 'error'", clip(unexpected.Unexpected.Value))
	case rest == "":
		e.Msg = "it ends too early; a comparison is a field, an operator and a value: level = 'error'"
	case !errors.As(err, &unexpected):
		e.Msg = fmt.Sprintf("%q is not part of the language", string([]rune(rest)[:1]))
	case isName(unexpected.Unexpected) && ofSQL[strings.ToUpper(unexpected.Unexpected.Value)] != "":
		e.Msg = fmt.Sprintf("%s is not a word of this language; %s", strings.ToUpper(unexpected.Unexpected.Value), ofSQL[strings.ToUpper(unexpected.Unexpected.Value)])
	case stands[strings.ToUpper(unexpected.Unexpected.Value)] != "":
		e.Msg = fmt.Sprintf("unexpected %q; %s", unexpected.Unexpected.Value, stands[strings.ToUpper(unexpected.Unexpected.Value)])
	case isName(unexpected.Unexpected):
		e.Msg = fmt.Sprintf("unexpected word %q; text is written in quotes: '%[1]s'", clip(unexpected.Unexpected.Value))
	default:
		e.Msg = fmt.Sprintf("unexpected %q", clip(unexpected.Unexpected.Value))
	}
	return e
}

// ofSQL are words of SQL, with what stands for them here.
var ofSQL = map[string]string{
	"IS":      "whether an event has an attribute is written: exists attributes.name, or NOT exists attributes.name",
	"LIKE":    "a part of a text is written: message contains 'part', a pattern: message matches 'expression'",
	"ILIKE":   "a part of a text is written: message contains 'part', a pattern: message matches '(?i)expression'",
	"BETWEEN": "a range is written: field >= 1 AND field <= 2",
}

// stands says of each keyword where it does.
var stands = map[string]string{
	"EXISTS":   "exists stands before a field, and takes no value: exists region, NOT exists region",
	"CONTAINS": between("contains", "'part'"),
	"MATCHES":  between("matches", "'expression'"),
	"IN":       between("IN", "('a', 'b')"),
	"NOT":      "NOT stands before a comparison, or in NOT IN: NOT level = 'error'",
	"AND":      "AND stands between two comparisons: level = 'error' AND status = 500",
	"OR":       "OR stands between two comparisons: level = 'error' OR status = 500",
	"TRUE":     "true is a value: cached = true",
	"FALSE":    "false is a value: cached = false",
}

func between(op, value string) string {
	return fmt.Sprintf("%s stands between a field and its value: message %[1]s %s, NOT message %[1]s %[2]s", op, value)
}

func isName(t lexer.Token) bool { return t.Type == tokens.Symbols()["Name"] }

// clip keeps a message short.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}
