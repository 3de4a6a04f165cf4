package patterns

import (
	"io"
	"regexp"
	"unicode/utf8"
)

const (
	// longText is where Find asks within a text whether to go on.
	longText = 64 << 10
	// askEvery is how many characters are read between two questions.
	askEvery = 4 << 10
)

// Find is re.FindSubmatchIndex. It asks stop now and then within a long text, and ends with its error; a nil stop is not asked.
func Find(re *regexp.Regexp, text []byte, stop func() error) ([]int, error) {
	if stop == nil || len(text) <= longText {
		return re.FindSubmatchIndex(text), nil
	}
	r := &asking{text: text, stop: stop}
	found := re.FindReaderSubmatchIndex(r)
	return found, r.err
}

// asking reads the characters of a text.
type asking struct {
	text  []byte
	stop  func() error
	count int
	err   error
}

// ReadRune is that of a reader of characters. What is not UTF-8 is a character of one byte, as regexp has it.
func (a *asking) ReadRune() (rune, int, error) {
	if a.count%askEvery == 0 && a.err == nil {
		a.err = a.stop()
	}
	if a.count++; a.err != nil || len(a.text) == 0 {
		return 0, 0, io.EOF
	}
	r, n := utf8.DecodeRune(a.text)
	a.text = a.text[n:]
	return r, n, nil
}
