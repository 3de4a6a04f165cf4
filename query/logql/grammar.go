package logql

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"

	"github.com/almanac-events/almanac/internal/patterns"
)

// The tokens. A unit is a number with letters behind it: a duration or a size. A line filter's operator is one token,
// but for !=, which is an operator of labels too.
var tokens = lexer.MustSimple([]lexer.SimpleRule{
	{Name: "Comment", Pattern: `#[^\n]*`},
	{Name: "Space", Pattern: `\s+`},
	{Name: "Text", Pattern: "\"(\\\\.|[^\"\\\\\\n])*\"|`[^`]*`"},
	{Name: "Unit", Pattern: `([0-9]+(\.[0-9]+)?(ns|us|µs|ms|(?i:[kmgtpe]i?b|b)|[smhdwy]))+`},
	{Name: "Number", Pattern: `([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?`},
	{Name: "Ident", Pattern: `[a-zA-Z_][a-zA-Z0-9_]*`},
	{Name: "Flag", Pattern: `--[a-z-]+`},
	{Name: "Op", Pattern: `\|=|\|~|\|>|!~|!>|=~|!=|==|>=|<=|[=<>|+*/%^-]`},
	{Name: "Punct", Pattern: `[{}()\[\],]`},
})

// The grammar: what was written, before any word of it is understood.
type (
	queryTerm struct {
		Log    *logTerm    `parser:"  @@"`
		Metric *metricTerm `parser:"| @@"`
	}
	logTerm struct {
		Selector *selectorTerm `parser:"@@"`
		Stages   []*stageTerm  `parser:"@@*"`
	}
	selectorTerm struct {
		Matchers []*matcherTerm `parser:"'{' ( @@ ( ',' @@ )* ','? )? '}'"`
	}
	matcherTerm struct {
		Pos  lexer.Position
		Name string `parser:"@Ident"`
		Op   string `parser:"@( '=' | '!=' | '=~' | '!~' )"`
		Text string `parser:"@Text"`
	}
	stageTerm struct {
		Pos  lexer.Position
		Line *lineTerm `parser:"  @@"`
		Pipe *pipeTerm `parser:"| '|' @@"`
	}
	lineTerm struct {
		Op    string      `parser:"@( '|=' | '!=' | '|~' | '!~' | '|>' | '!>' )"`
		First *lineText   `parser:"@@"`
		More  []*lineText `parser:"( 'or' @@ )*"`
	}
	lineText struct {
		Func string `parser:"(  @Ident '('"`
		Arg  string `parser:"   @Text ')'"`
		Text string `parser:"|  @Text )"`
	}
	pipeTerm struct {
		Pos    lexer.Position
		Parser *parserTerm `parser:"  @@"`
		Unwrap *unwrapTerm `parser:"| 'unwrap' @@"`
		Format *string     `parser:"| 'line_format' @Text"`
		Labels []*setTerm  `parser:"| 'label_format' @@ ( ',' @@ )*"`
		Drop   []*dropTerm `parser:"| 'drop' @@ ( ',' @@ )*"`
		Keep   []*dropTerm `parser:"| 'keep' @@ ( ',' @@ )*"`
		Filter *orTerm     `parser:"| @@"`
	}
	parserTerm struct {
		Name  string       `parser:"@( 'json' | 'logfmt' | 'regexp' | 'pattern' | 'unpack' | 'decolorize' | 'distinct' )"`
		Flags []string     `parser:"@Flag*"`
		Text  *string      `parser:"@Text?"`
		Paths []*paramTerm `parser:"( @@ ( ',' @@ )* )?"`
	}
	paramTerm struct {
		Name string  `parser:"@Ident"`
		Text *string `parser:"( '=' @Text )?"`
	}
	unwrapTerm struct {
		Conv  string `parser:"( @( 'bytes' | 'duration' | 'duration_seconds' ) '(' )?"`
		Label string `parser:"@Ident ')'?"`
	}
	setTerm struct {
		Pos  lexer.Position
		Name string  `parser:"@Ident '='"`
		Text *string `parser:"( @Text"`
		From string  `parser:"| @Ident )"`
	}
	dropTerm struct {
		Name string  `parser:"@Ident"`
		Op   string  `parser:"( @( '=' | '!=' | '=~' | '!~' )"`
		Text *string `parser:"  @Text )?"`
	}
	orTerm struct {
		Terms []*andTerm `parser:"@@ ( 'or' @@ )*"`
	}
	andTerm struct {
		Terms []*condTerm `parser:"@@ ( ( 'and' | ',' )? @@ )*"`
	}
	condTerm struct {
		Pos   lexer.Position
		Group *orTerm   `parser:"  '(' @@ ')'"`
		Cond  *compTerm `parser:"| @@"`
	}
	compTerm struct {
		Name   string  `parser:"@Ident"`
		Op     string  `parser:"@( '==' | '=~' | '!~' | '!=' | '>=' | '<=' | '=' | '>' | '<' )"`
		Func   string  `parser:"(  @Ident '('"`
		Arg    string  `parser:"   @Text ')'"`
		Text   *string `parser:"|  @Text"`
		Number *string `parser:"|  @( '-'? Number )"`
		Unit   *string `parser:"|  @( '-'? Unit ) )"`
	}
	metricTerm struct {
		First *operandTerm `parser:"@@"`
		Rest  []*opTerm    `parser:"@@*"`
	}
	opTerm struct {
		Pos     lexer.Position
		Op      string       `parser:"@( '+' | '-' | '*' | '/' | '%' | '^' | '==' | '!=' | '>=' | '<=' | '>' | '<' | 'and' | 'or' | 'unless' )"`
		Bool    bool         `parser:"@'bool'?"`
		Match   string       `parser:"@( 'on' | 'ignoring' | 'group_left' | 'group_right' )?"`
		Operand *operandTerm `parser:"@@"`
	}
	operandTerm struct {
		Pos    lexer.Position
		Sign   string      `parser:"@( '-' | '+' )?"`
		Number *string     `parser:"(  @Number"`
		Group  *metricTerm `parser:"| '(' @@ ')'"`
		Call   *callTerm   `parser:"| @@ )"`
	}
	callTerm struct {
		Name   string      `parser:"@Ident"`
		Before *groupTerm  `parser:"@@? '('"`
		Param  *string     `parser:"( @( '-'? Number ) ',' )?"`
		Range  *rangeTerm  `parser:"( @@"`
		Inner  *metricTerm `parser:"| @@ )?"`
		Texts  []string    `parser:"( ',' @Text )* ')'"` // of functions that are refused by name
		After  *groupTerm  `parser:"@@?"`
	}
	groupTerm struct {
		Kind   string   `parser:"@( 'by' | 'without' )"`
		Labels []string `parser:"'(' ( @Ident ( ',' @Ident )* ','? )? ')'"`
	}
	rangeTerm struct {
		Pos    lexer.Position
		Log    *logTerm     `parser:"@@ '['"`
		Range  string       `parser:"@( Unit | Number ) ']'"`
		Offset string       `parser:"( 'offset' @( '-'? Unit ) )?"`
		Stages []*stageTerm `parser:"@@*"`
		Late   string       `parser:"( 'offset' @( '-'? Unit ) )?"`
	}
)

var grammar = participle.MustBuild[queryTerm](
	participle.Lexer(tokens),
	participle.Elide("Space", "Comment"),
	participle.UseLookahead(64),
)

// Bounds of a query. Beyond them it is a program, not a question.
const (
	// MaxQueryBytes bounds the text.
	MaxQueryBytes = 16 << 10
	// MaxNesting bounds parentheses within parentheses.
	MaxNesting = 32
	// MaxStages bounds the stages behind one selector: each is done for each line.
	MaxStages = 100
)

func parseText(src string) (*queryTerm, error) {
	if len(src) > MaxQueryBytes {
		return nil, &Error{Kind: ErrTooLarge, Line: 1, Column: 1, Msg: fmt.Sprintf("the query has %d bytes, the limit is %d", len(src), MaxQueryBytes)}
	}
	if strings.TrimSpace(src) == "" {
		return nil, &Error{Kind: ErrSyntax, Line: 1, Column: 1, Msg: `the query is empty; it begins with a selector, such as {service="api"}`}
	}
	if err := checkTokens(src); err != nil {
		return nil, err
	}
	tree, err := grammar.ParseString("", src)
	if err != nil {
		return nil, syntaxError(src, err)
	}
	return tree, nil
}

// checkTokens counts parentheses before anything recurses over them, and what repetitions add to expressions before
// any is compiled.
func checkTokens(src string) error {
	lex, err := tokens.LexString("", src)
	if err != nil {
		return syntaxError(src, err)
	}
	text, operator := tokens.Symbols()["Text"], tokens.Symbols()["Op"]
	for depth, repeated, matches := 0, 0, false; ; {
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
		case t.Type == operator:
			matches = t.Value == "=~" || t.Value == "!~" || t.Value == "|~"
		case t.Type == text && matches:
			if said, err := unquote(t.Value); err == nil {
				repeated += patterns.Repeated(said, syntax.Perl)
			}
		}
		if repeated > patterns.MaxRepeated {
			return &Error{Kind: ErrTooLarge, Line: t.Pos.Line, Column: t.Pos.Column, Msg: patterns.TooLarge(patterns.MaxRepeated).Error()}
		}
		if depth > MaxNesting {
			return &Error{Kind: ErrTooLarge, Line: t.Pos.Line, Column: t.Pos.Column, Msg: fmt.Sprintf("parentheses are nested deeper than %d", MaxNesting)}
		}
	}
}

// syntaxError is an error of the parser in the form in which Loki says it, since its clients show the place.
func syntaxError(src string, err error) error {
	e := &Error{Kind: ErrSyntax, Line: 1, Column: 1, Msg: "parse error: " + err.Error()}
	var at participle.Error
	if !errors.As(err, &at) {
		return e
	}
	e.Line, e.Column = at.Position().Line, at.Position().Column
	what := at.Message()
	if strings.TrimSpace(src[min(at.Position().Offset, len(src)):]) == "" {
		what = "the query ends too early"
	}
	e.Msg = fmt.Sprintf("parse error at line %d, col %d: syntax error: %s", e.Line, e.Column, what)
	return e
}
