package backup

import (
	"context"
	"crypto/md5" //nolint:gosec // what S3 wants to know of a body
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/almanac-events/almanac/internal/backoff"
)

// A bucket has no lock that ends with a process. Who writes has a file there that it writes again and again, each time under the condition
// that no other process did. Another process takes it over once it stood still for so long that its owner must have ended.

// leaseTimes are how often such a file is written, and how long it stands still before it is another's.
type leaseTimes struct{ renew, lasts time.Duration }

var usualLease = leaseTimes{renew: 5 * time.Second, lasts: 45 * time.Second}

// lease is the right to write into a bucket.
type lease struct {
	b    *Bucket
	id   string
	stop context.CancelFunc
	done chan struct{}

	mu      sync.Mutex
	n       int
	etag    string
	written time.Time // before it was asked for
	lost    error
}

func (b *Bucket) hold(ctx context.Context) (hold, error) {
	l := &lease{b: b, id: rand.Text(), done: make(chan struct{})}
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop = stop
	go l.keep(running)
	if err := b.sweepParts(ctx); err != nil {
		return nil, errors.Join(err, l.release(ctx))
	}
	return l, nil
}

// errTaken means that the file is not as it was expected: it was written meanwhile, or removed.
var errTaken = errors.New("taken")

// write writes the file, if it is as etag says; "": if there is none.
func (l *lease) write(ctx context.Context, etag string) error {
	l.n++
	text := fmt.Sprintf("%s %d\n", l.id, l.n)
	var o minio.PutObjectOptions
	if etag == "" {
		o.SetMatchETagExcept("*")
	} else {
		o.SetMatchETag(etag)
	}
	sum := md5.Sum([]byte(text)) //nolint:gosec // as above
	began := time.Now()
	info, err := l.b.core.PutObject(ctx, l.b.name, l.b.key(lockName), strings.NewReader(text), int64(len(text)), base64.StdEncoding.EncodeToString(sum[:]), "", o)
	if err == nil {
		l.etag, l.written = info.ETag, began
		return nil
	}
	switch answer := minio.ToErrorResponse(err); answer.StatusCode {
	// 412: it is not as etag says. 404: it was removed. 409: another write of it is under way, and
	// may be our own. A missing bucket is a 404 too, and no other process's doing.
	case http.StatusPreconditionFailed, http.StatusConflict, http.StatusNotFound:
		if answer.Code == minio.NoSuchBucket {
			break
		}
		// Where an answer was lost, or was not waited for, it is ours all the same.
		if now, etag, err := l.b.holder(ctx); err == nil && strings.HasPrefix(now, l.id+" ") {
			l.etag, l.written = etag, began
			return nil
		}
		return errTaken
	case http.StatusNotImplemented:
		return fmt.Errorf("%w: %s takes no conditional writes (If-Match, If-None-Match), without which two backups could remove each other's files", ErrObjectStore, l.b.At(""))
	}
	return l.b.failed("writing", lockName, err)
}

// holder is what the file says.
func (b *Bucket) holder(ctx context.Context) (text, etag string, err error) {
	body, info, _, err := b.core.GetObject(ctx, b.name, b.key(lockName), minio.GetObjectOptions{})
	if err != nil {
		return "", "", b.failed("reading", lockName, err)
	}
	defer func() { _ = body.Close() }()
	said, err := io.ReadAll(io.LimitReader(body, maxLeaseBytes))
	if err != nil {
		return "", "", b.failed("reading", lockName, err)
	}
	return string(said), info.ETag, nil
}

// maxLeaseBytes is more than write writes.
const maxLeaseBytes = 100

// take gets the file. It waits for the end of another's that stands still.
func (l *lease) take(ctx context.Context) error {
	busy := fmt.Errorf("%w: another process has %s: wait for its end", ErrBusy, l.b.At(lockName))
	err := l.write(ctx, "")
	var seen string
	var since time.Time
	for errors.Is(err, errTaken) {
		var etag string
		_, etag, err = l.b.holder(ctx)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = l.write(ctx, "")
			continue
		case err != nil:
			return err
		case seen == "":
			seen, since = etag, time.Now()
		case seen != etag:
			return busy
		case time.Since(since) >= l.b.lease.lasts:
			if err = l.write(ctx, seen); errors.Is(err, errTaken) {
				return busy
			}
			continue
		}
		if err = backoff.Sleep(ctx, l.b.lease.renew/2); err == nil {
			err = errTaken
		}
	}
	return err
}

// keep writes the file again and again.
func (l *lease) keep(ctx context.Context) {
	defer close(l.done)
	for range backoff.Ticks(ctx, l.b.lease.renew) {
		if errors.Is(l.still(ctx), ErrBusy) {
			return
		}
	}
}

func (l *lease) still(ctx context.Context) error { return l.within(ctx, 0) }

// yet asks for nothing where the file was written a short while ago: until it lasts another process cannot have it.
func (l *lease) yet(ctx context.Context) error { return l.within(ctx, l.b.lease.lasts/3) }

// within writes the file, unless it was written so long ago at most.
func (l *lease) within(ctx context.Context, recently time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost != nil {
		return l.lost
	}
	if time.Since(l.written) < recently {
		return nil
	}
	err := l.write(ctx, l.etag)
	if errors.Is(err, errTaken) {
		l.lost = fmt.Errorf("%w: it took %s after this one had not written it for longer than %s, or the file was removed: run it again", ErrBusy, l.b.At(lockName), l.b.lease.lasts)
		return l.lost
	}
	return err
}

// release removes the file, unless it is another's.
func (l *lease) release(ctx context.Context) error {
	l.stop()
	<-l.done
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.b.lease.lasts)
	defer cancel()
	if l.still(ctx) != nil {
		return nil // it stands still, and is the next one's
	}
	return l.b.remove(ctx, lockName)
}
