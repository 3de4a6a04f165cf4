package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// clearLine goes back to the beginning of the line and clears it: lines of progress begin with it.
const clearLine = "\r\x1b[K"

// garbles reports whether a character would do something to a terminal, or to the order in which
// it shows others: control characters, and those that change the direction of text or end a line.
func garbles(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
		r == 0x2028 || r == 0x2029 || // ends of a line and a paragraph
		r >= 0x206A && r <= 0x206F || r >= 0xFFF9 && r <= 0xFFFB || r >= 0xE0000 && r <= 0xE007F // retired, annotations, tags: none is shown
}

// screen is a terminal on which nothing that others wrote moves the cursor, changes colours or
// retitles the window, in whatever format it is printed. What would do so is shown as \u001b, which
// JSON reads as the same character; files and pipes get every byte as it is.
type screen struct {
	file *os.File
	// progress: a write may begin with clearLine.
	progress bool
	mu       sync.Mutex // lines of progress come beside others
	rest     []byte     // the beginning of a character whose end was not written yet
}

// onScreen returns w, behind a screen where it is a terminal.
func onScreen(w io.Writer, progress bool) io.Writer {
	if f, ok := w.(*os.File); ok && terminal(f) {
		return &screen{file: f, progress: progress}
	}
	return w
}

// unfiltered returns the terminal itself, for what Almanac alone has written, colours among it.
func unfiltered(w io.Writer) io.Writer {
	if s, ok := w.(*screen); ok {
		return s.file
	}
	return w
}

// Write writes p without what would garble the terminal.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []byte
	rest := append(s.rest, p...)
	s.rest = nil
	if s.progress && bytes.HasPrefix(rest, []byte(clearLine)) {
		out, rest = append(out, clearLine...), rest[len(clearLine):]
	}
	for len(rest) > 0 && utf8.FullRune(rest) {
		r, n := utf8.DecodeRune(rest)
		out = appendShown(out, r, rest[:n])
		rest = rest[n:]
	}
	s.rest = append(s.rest, rest...)
	if _, err := s.file.Write(out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// end shows what is left of a character that was never ended.
func (s *screen) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.rest {
		_, _ = s.file.Write(appendShown(nil, utf8.RuneError, []byte{c}))
	}
	s.rest = nil
}

// appendShown appends a character as a terminal may show it; text is how it was written.
func appendShown(out []byte, r rune, text []byte) []byte {
	switch {
	case r == utf8.RuneError && len(text) == 1: // a byte that is not UTF-8
		return fmt.Appendf(out, "\\u%04x", text[0])
	case r == '\n' || r == '\t' || !garbles(r):
		return append(out, text...)
	}
	if r > 0xFFFF {
		high, low := utf16.EncodeRune(r)
		return fmt.Appendf(out, "\\u%04x\\u%04x", high, low)
	}
	return fmt.Appendf(out, "\\u%04x", r)
}
