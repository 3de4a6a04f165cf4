package main

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
)

// What events say was written by others. Tables are for people, so they replace what would
// garble a terminal (garbles) wherever they are printed. On a terminal a screen does it for every
// format; in files and pipes the machine formats keep every byte.

// printable is s on one line without control characters.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return '⏎'
		case r == '\t' || r == '\r':
			return ' '
		case garbles(r):
			return '·'
		}
		return r
	}, strings.TrimRight(s, "\r\n"))
}

// printableLines is printable for text of several lines.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
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
	if s, ok := w.(*screen); ok {
		w = s.file
	}
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// colours says whether w may have them; see no-color.org.
func colours(w io.Writer) bool {
	return terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
