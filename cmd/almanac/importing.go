package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/almanac-events/almanac/schemas"
)

// importWorkers write at once, so that their creates are committed in groups.
const importWorkers = 64

// maxRefusedLines bounds the refused lines that are named.
const maxRefusedLines = 20

// lineFate is what became of a line of an import.
type lineFate int

const (
	lineCreated lineFate = iota
	lineExists
	lineRefused // with an error that says why
	lineFailed  // with an error that ends the import
)

// importLines has create take each line of stdin, many at once, and says what became of them. what is the
// singular of what is created. Exit code 3 where lines were refused, or after a part.
func (a *app) importLines(ctx context.Context, cmd *cobra.Command, what string, maxLine int, create func(ctx context.Context, line []byte) (lineFate, error)) error {
	return a.eachLine(ctx, cmd, maxLine, func(created, exist, refused int64) string {
		return fmt.Sprintf("%s created, %d existed, %s refused", plural(created, what), exist, plural(refused, "line"))
	}, create)
}

// eachLine is importLines for a verb that says otherwise what it did.
func (a *app) eachLine(ctx context.Context, cmd *cobra.Command, maxLine int, did func(created, exist, refused int64) string, create func(ctx context.Context, line []byte) (lineFate, error)) error {
	type line struct {
		n    int
		text []byte
	}
	lines := make(chan line, importWorkers) // one is ready for each worker, so that none waits for the reader
	var counts [lineFailed + 1]atomic.Int64
	var failed error
	var once sync.Once
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	for range importWorkers {
		wg.Go(func() {
			for l := range lines {
				fate, err := create(work, l.text)
				n := counts[fate].Add(1)
				switch {
				case fate == lineRefused && n <= maxRefusedLines:
					a.note("line %d: %s", l.n, schemas.Text(err))
				case fate == lineFailed:
					once.Do(func() { failed = fmt.Errorf("line %d: %w", l.n, err); cancel() })
				}
			}
		})
	}
	in := bufio.NewScanner(a.input(work))
	in.Buffer(nil, maxLine)
	for n := 1; in.Scan() && work.Err() == nil; n++ {
		if text := bytes.TrimSpace(in.Bytes()); len(text) > 0 {
			lines <- line{n, bytes.Clone(text)}
		}
	}
	close(lines)
	wg.Wait()
	created, exist, refused := counts[lineCreated].Load(), counts[lineExists].Load(), counts[lineRefused].Load()
	a.note("%s", did(created, exist, refused))
	err := failed
	if err == nil {
		err = in.Err()
	}
	switch {
	case err != nil && created+exist > 0:
		a.note("%s", formatError(explained(ctx, cmd, err))) // which the exit code alone would not say
		return errors.Join(errPartial, err)
	case err != nil:
		return err
	case refused > 0:
		return errPartial
	}
	return nil
}
