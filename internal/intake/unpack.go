package intake

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// maxZstdWindow bounds what a zstd input makes a reader hold: the window of
// `zstd --long`.
const maxZstdWindow = 128 << 20

// What a compressed input begins with (RFC 1952, RFC 8878).
var (
	gzipMagic = []byte{0x1f, 0x8b, 8}
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
)

// Unpack returns what r holds when it is compressed with gzip or zstd, which its
// first bytes tell, and else r's own bytes. It starts no goroutine.
func Unpack(r io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(r, readBytes)
	var first []byte
	var err error
	// No byte more than tells: the input may be a person's first short line, with nothing behind it yet.
	for n := 1; n <= len(zstdMagic) && len(first) == n-1 && (bytes.HasPrefix(gzipMagic, first) || bytes.HasPrefix(zstdMagic, first)); n++ {
		if first, err = in.Peek(n); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	var out io.Reader
	switch {
	case bytes.HasPrefix(first, gzipMagic):
		out, err = gzip.NewReader(in)
	case bytes.Equal(first, zstdMagic):
		out, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
	default:
		return in, nil
	}
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	return packed{out}, nil
}

// packed says what a damaged archive is.
type packed struct{ r io.Reader }

// Read implements io.Reader.
func (p packed) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	switch {
	case err == nil || errors.Is(err, io.EOF):
		return n, err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return n, ErrCutShort
	}
	return n, fmt.Errorf("%w: %w", ErrDamaged, err)
}
