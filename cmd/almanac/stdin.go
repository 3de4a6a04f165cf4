package main

import (
	"context"
	"io"
)

// input is stdin for the verbs that wait for it. A read of a terminal or a pipe cannot be interrupted: once ctx ends, one that waits is left
// behind, and what was read so far is not taken for the whole. send reads by itself, since it keeps what it has.
func (a *app) input(ctx context.Context) io.Reader {
	return &input{from: a.stdin, ends: ctx.Done()}
}

type input struct {
	from io.Reader
	ends <-chan struct{}
	rest []byte // read, and not given yet
	err  error  // what follows rest
}

// Read gives what comes, or errInterrupted.
func (i *input) Read(p []byte) (int, error) {
	for len(i.rest) == 0 {
		if i.err != nil {
			return 0, i.err
		}
		got := make(chan input, 1)
		go func() {
			buf := make([]byte, 64<<10)
			n, err := i.from.Read(buf)
			got <- input{rest: buf[:n], err: err}
		}()
		select {
		case read := <-got:
			i.rest, i.err = read.rest, read.err
		case <-i.ends:
			i.err = errInterrupted
		}
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}
