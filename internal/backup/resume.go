package backup

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/almanac-events/almanac/internal/backoff"
)

// Waits before a read that was cut off goes on.
const resumeLeast, resumeMost = 100 * time.Millisecond, 5 * time.Second

// resumed reads a file of a bucket. Where the connection is cut it goes on where it was.
type resumed struct {
	ctx  context.Context
	b    *Bucket
	name string

	body     io.ReadCloser
	etag     string
	at, size int64
	failed   int // attempts since the last byte
}

func (b *Bucket) open(ctx context.Context, name string) (io.ReadCloser, error) {
	r := &resumed{ctx: ctx, b: b, name: name}
	return r, r.ask()
}

// ask asks for what is left.
func (r *resumed) ask() error {
	var o minio.GetObjectOptions
	if r.at > 0 {
		if err := errors.Join(o.SetRange(r.at, 0), o.SetMatchETag(r.etag)); err != nil {
			return r.b.failed("reading", r.name, err)
		}
	}
	body, info, _, err := r.b.core.GetObject(r.ctx, r.b.name, r.b.key(r.name), o)
	if err != nil {
		return r.b.failed("reading", r.name, err)
	}
	if r.body = body; r.at == 0 {
		r.etag, r.size = info.ETag, info.Size
	}
	return nil
}

// Read returns an error of ErrObjectStore, or io.EOF at the file's end.
func (r *resumed) Read(p []byte) (int, error) {
	for {
		if r.at >= r.size {
			return 0, io.EOF
		}
		if r.body == nil {
			if err := r.ask(); err != nil {
				return 0, err
			}
		}
		n, err := r.body.Read(p)
		r.at += int64(n)
		if err != nil {
			_ = r.body.Close()
			r.body = nil
		}
		if n > 0 {
			r.failed = 0
			return n, nil
		}
		if err == nil {
			continue
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if r.failed++; r.failed >= r.b.tries {
			return 0, r.b.failed("reading", r.name, err)
		}
		if err := backoff.Sleep(r.ctx, backoff.After(r.failed, resumeLeast, resumeMost, 1)); err != nil {
			return 0, err
		}
	}
}

func (r *resumed) Close() error {
	if r.body == nil {
		return nil
	}
	return r.body.Close()
}
