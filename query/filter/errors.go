package filter

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// What an *Error is about, for errors.Is.
var (
	// ErrSyntax: the text is not a filter.
	ErrSyntax = errors.New("bad filter")
	// ErrUnknownField: the topic has no such column or promoted field.
	ErrUnknownField = errors.New("unknown field")
	// ErrType: the value or the operator does not fit the field's type.
	ErrType = errors.New("bad comparison")
	// ErrTooLarge: the filter is longer or deeper than its bounds.
	ErrTooLarge = errors.New("filter too large")
)

// Error is why a filter is refused, and where.
type Error struct {
	Src    string // the whole filter
	Column int    // 1-based, in characters
	Msg    string
	Kind   error // one of the sentinels
}

// Error is one line: kind, column, message.
func (e *Error) Error() string {
	return e.Kind.Error() + " at column " + strconv.Itoa(e.Column) + ": " + e.Msg
}

// Unwrap is the kind, for errors.Is.
func (e *Error) Unwrap() error { return e.Kind }

// caretContext is how many characters Render shows on each side of the place:
// what fits a terminal of 80 columns.
const caretContext = 36

// Render is the error for people: the message, the filter, or the part of it
// around the place, and a caret below the place.
func (e *Error) Render() string {
	src := []rune(strings.Map(oneColumn, e.Src))
	at := min(max(e.Column-1, 0), len(src))
	from, to := max(at-caretContext, 0), min(at+caretContext, len(src))
	head, tail := "", ""
	if from > 0 {
		head = "…"
	}
	if to < len(src) {
		tail = "…"
	}
	pad := strings.Repeat(" ", at-from+utf8.RuneCountInString(head))
	return e.Error() + "\n  " + head + string(src[from:to]) + tail + "\n  " + pad + "^"
}

// oneColumn makes every character one column wide on a terminal.
func oneColumn(r rune) rune {
	if r < ' ' || r == 0x7f {
		return ' '
	}
	return r
}

// columnAt is the 1-based column of a byte offset.
func columnAt(src string, offset int) int {
	return utf8.RuneCountInString(src[:min(max(offset, 0), len(src))]) + 1
}
