package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/almanac-events/almanac/internal/gateway/pool"
)

// Bounds of a body.
const (
	// MaxWireBytes bounds a body as it is sent.
	MaxWireBytes = 16 << 20
	// MaxBytes bounds it unpacked, as OTLP's own advice has it, and is all that bounds it: the lines of
	// a program that restarts again and again are packed 140 times, and each is meant.
	MaxBytes = 20 << 20
	// A body must keep minRate once it has taken slowAfter.
	slowAfter = 10 * time.Second
	minRate   = 16 << 10 // bytes a second
	// zstdMemory bounds what the header of a zstd body can make the reader hold.
	zstdMemory = 8 << 20

	// firstBytes are reserved before the first byte has come. More is reserved as bytes
	// come, whatever length the client declares: a slow client holds what it sent.
	firstBytes = 16 << 10
)

// Body reads a whole body, unpacks it, and reserves in req weight bytes for each of its
// bytes. Its errors are *Error or those of the pool.
func Body(w http.ResponseWriter, r *http.Request, req *pool.Request, weight int) ([]byte, error) {
	return readBody(w, r, req, weight, r.Header.Get("Content-Encoding"))
}

// Packed is Body for protocols that unpack a body themselves: it comes as it was sent.
func Packed(w http.ResponseWriter, r *http.Request, req *pool.Request, weight int) ([]byte, error) {
	return readBody(w, r, req, weight, "")
}

func readBody(w http.ResponseWriter, r *http.Request, req *pool.Request, weight int, encoding string) ([]byte, error) {
	if r.ContentLength > MaxWireBytes {
		return nil, tooLarge(MaxWireBytes, "on the wire")
	}
	wire := Pace(w, r)
	defer func() { _ = wire.Close() }()
	plain, done, err := unpack(encoding, wire)
	if err != nil {
		return nil, err
	}
	defer done()
	whole := MaxBytes + 1
	if plain == io.Reader(wire) && r.ContentLength > 0 {
		whole = int(r.ContentLength) + 1 // and the end is seen without growing
	}
	req.From(pool.PeerOf(r.RemoteAddr))
	size := min(firstBytes, whole)
	if err := req.Grow(r.Context(), size*weight); err != nil {
		return nil, err
	}
	body := make([]byte, 0, size)
	for {
		n, err := plain.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		switch {
		case errors.Is(err, io.EOF):
			return body, nil
		case err != nil:
			return nil, wire.explain(err)
		case len(body) > MaxBytes:
			return nil, tooLarge(MaxBytes, "unpacked")
		}
		if len(body) == cap(body) {
			more := max(min(3*len(body), whole-len(body)), 1) // four times as much, up to the end
			if err := req.Grow(r.Context(), more*weight); err != nil {
				return nil, err
			}
			grown := make([]byte, len(body), len(body)+more)
			copy(grown, body)
			body = grown
		}
	}
}

func tooLarge(limit int, where string) error {
	return Refuse(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body has more than %d bytes %s", limit, where), "send it as several requests")
}

// unpack returns what a body holds by its Content-Encoding. It starts no goroutine.
func unpack(encoding string, in io.Reader) (plain io.Reader, done func(), err error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return in, func() {}, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, malformed("gzip", in, err)
		}
		return z, func() {}, nil
	case "zstd":
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(zstdMemory), zstd.WithDecoderMaxWindow(zstdMemory))
		if err != nil {
			return nil, nil, malformed("zstd", in, err)
		}
		return z, z.Close, nil
	}
	return nil, nil, Refuse(http.StatusUnsupportedMediaType, "unsupported_encoding", fmt.Sprintf("Content-Encoding %q is not known", encoding), "use gzip, zstd or none")
}

func malformed(encoding string, in io.Reader, err error) error {
	if w, ok := in.(*Paced); ok && w.err != nil {
		return w.explain(err)
	}
	return Refuse(http.StatusBadRequest, "bad_encoding", fmt.Sprintf("the body is not %s: %v", encoding, err), "")
}

// Paced reads a body as it is sent, within its bounds: in size, and in time, since a slow
// client holds what others need. The bound on time is off once the body ended.
type Paced struct {
	body    io.Reader
	rc      *http.ResponseController
	ctx     context.Context
	began   time.Time // the first read
	read    int
	err     error // other than io.EOF, of the connection or a bound
	bounded bool  // deadlines can be set
}

// Pace returns a request's body as Paced. One that is paced already stays what it is.
func Pace(w http.ResponseWriter, r *http.Request) *Paced {
	if p, ok := r.Body.(*Paced); ok {
		return p
	}
	return &Paced{body: r.Body, rc: http.NewResponseController(w), ctx: r.Context(), bounded: true}
}

// Pacing paces the bodies of all requests to a handler and their answers, whatever their routes do with them. A body that no route
// reads has a bound too: net/http takes it before it answers, for as long as it takes. An answer that does not stream (Streams) must
// be taken within most of its request.
func Pacing(next http.Handler, most time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := paceAnswer(w, most)
		defer answer.bound() // net/http still writes what its buffer holds
		w = answer
		if r.ContentLength != 0 {
			p := Pace(w, r)
			p.bounded = p.rc.SetReadDeadline(time.Now().Add(slowAfter)) == nil
			r.Body = p
		}
		next.ServeHTTP(w, r)
	})
}

// Read implements io.Reader.
func (w *Paced) Read(b []byte) (int, error) {
	if w.read > MaxWireBytes {
		w.err = tooLarge(MaxWireBytes, "on the wire")
		return 0, w.err
	}
	if w.began.IsZero() {
		w.began = time.Now()
	}
	if w.bounded {
		w.bounded = w.rc.SetReadDeadline(w.began.Add(slowAfter+time.Duration(w.read/minRate)*time.Second)) == nil
	}
	n, err := w.body.Read(b)
	w.read += n
	switch {
	case errors.Is(err, io.EOF) && w.bounded: // what the connection waits for from here on has no end, or its own
		_ = w.rc.SetReadDeadline(time.Time{})
	case err != nil && !errors.Is(err, io.EOF):
		w.err = err
	}
	return n, err
}

// Close leaves a body that did not end its bound: net/http takes more of it. It is never an error.
func (w *Paced) Close() error { return nil }

// Broken returns why reading ended before the body did, for the client; nil: it did not.
func (w *Paced) Broken() error {
	if w.err == nil {
		return nil
	}
	return w.explain(w.err)
}

// explain returns why reading ended, for the client.
func (w *Paced) explain(err error) error {
	var own *Error
	switch {
	case errors.As(w.err, &own):
		return own
	case errors.Is(w.err, os.ErrDeadlineExceeded):
		return Refuse(http.StatusRequestTimeout, "too_slow", fmt.Sprintf("the body came slower than %d KiB a second", minRate>>10), "send smaller requests")
	case w.err != nil:
		return Refuse(http.StatusBadRequest, "broken_body", fmt.Sprintf("the body broke off after %d bytes: %v", w.read, w.err), "")
	}
	return Refuse(http.StatusBadRequest, "bad_encoding", fmt.Sprintf("the body cannot be unpacked: %v", err), "")
}
