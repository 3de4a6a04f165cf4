package markdown

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Errors of documents.
var (
	// ErrNoSection: the document has no place for the section.
	ErrNoSection = errors.New("no such section")
	// ErrOther: the file has another text.
	ErrOther = errors.New("another text")
)

// Put returns a document with text as its section of a name.
func Put(document []byte, name, text string) ([]byte, error) {
	begin, end := []byte("<!-- "+name+" -->\n"), []byte("<!-- /"+name+" -->")
	before, rest, begins := bytes.Cut(document, begin)
	_, after, ends := bytes.Cut(rest, end)
	if !begins || !ends || bytes.Count(document, begin) != 1 || bytes.Count(document, end) != 1 {
		return nil, fmt.Errorf("%w: it needs the lines <!-- %s --> and <!-- /%s -->, once each", ErrNoSection, name, name)
	}
	section := "\n" + strings.TrimSpace(text) + "\n\n"
	return bytes.Join([][]byte{before, begin, []byte(section), end, after}, nil), nil
}

// Section holds a section of a file to a text: it writes it, or compares.
func Section(path, name, text string, write bool) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	now, err := Put(document, name, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return hold(path, document, now, write)
}

// File holds a file to a text: it writes it, or compares.
func File(path, text string, write bool) error {
	document, err := os.ReadFile(path)
	if err != nil && (!write || !errors.Is(err, os.ErrNotExist)) {
		return err
	}
	return hold(path, document, []byte(text), write)
}

func hold(path string, was, now []byte, write bool) error {
	switch {
	case bytes.Equal(was, now):
		return nil
	case write:
		return os.WriteFile(path, now, 0o644)
	}
	return fmt.Errorf("%s: %w than is made for it", path, ErrOther)
}
