package intake

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrPause is what Pauses gives where its input is silent.
var ErrPause = errors.New("the input is silent")

// Pauses reads an input that may be silent for long, such as a pipe from a program that runs. A reader of
// records of many lines hears of a silence and takes the lines so far for a record. Where ctx ends, so
// does the input: a read of a pipe cannot be interrupted, and is left behind.
//
// Not safe for concurrent use.
type Pauses struct {
	ctx   context.Context
	after time.Duration
	full  chan chunk
	free  chan []byte
	now   chunk  // what is being read
	rest  []byte // of it
	told  bool   // of this silence
}

// chunk is what one read gave.
type chunk struct {
	data []byte
	err  error
}

// NewPauses reads r, in which a silence is as long as after. It reads ahead, of two buffers one.
func NewPauses(ctx context.Context, r io.Reader, after time.Duration) *Pauses {
	p := &Pauses{ctx: ctx, after: after, full: make(chan chunk), free: make(chan []byte, 2)}
	p.free <- make([]byte, readBytes)
	p.free <- make([]byte, readBytes)
	go p.fill(r)
	return p
}

// fill reads until the input ends, or the reader is given up.
func (p *Pauses) fill(r io.Reader) {
	for {
		var buf []byte
		select {
		case buf = <-p.free:
		case <-p.ctx.Done():
			return
		}
		n, err := r.Read(buf)
		select {
		case p.full <- chunk{buf[:n], err}:
		case <-p.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (p *Pauses) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.now.err != nil {
			return 0, p.now.err
		}
		if p.now.data != nil {
			p.free <- p.now.data[:cap(p.now.data)]
			p.now.data = nil
		}
		if err := p.wait(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// wait takes the next chunk. A silence is told of once.
func (p *Pauses) wait() error {
	var silent <-chan time.Time
	if !p.told {
		t := time.NewTimer(p.after)
		defer t.Stop()
		silent = t.C
	}
	select {
	case p.now = <-p.full:
		p.rest, p.told = p.now.data, false
		return nil
	case <-silent:
		p.told = true
		return ErrPause
	case <-p.ctx.Done():
		p.now.err = io.EOF
		return io.EOF
	}
}
