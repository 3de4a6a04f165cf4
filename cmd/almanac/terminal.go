package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/mattn/go-isatty"
)

// What events say was written by others. Shown to people it must not move the
// cursor, change colours or retitle the window, so control characters are
// replaced; the machine formats keep every byte.

// printable is s on one line without control characters.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return '⏎'
		case r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r):
			return '·'
		}
		return r
	}, strings.TrimRight(s, "\r\n"))
}

// copyPrintable copies lines without their control characters.
func copyPrintable(w io.Writer, lines io.Reader) error {
	in := bufio.NewReader(lines)
	for {
		line, err := in.ReadString('\n') // whole lines, so that no character is cut in two
		if line != "" {
			if _, err := io.WriteString(w, printable(line)+"\n"); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// terminal says whether w is one.
func terminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// colours says whether w may have them; see no-color.org.
func colours(w io.Writer) bool {
	return terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
