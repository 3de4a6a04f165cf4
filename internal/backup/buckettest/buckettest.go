package buckettest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

// Name is the bucket, and AccessKey and Secret open it.
const (
	Name      = "backups"
	AccessKey = "AKIAEXAMPLE"
	Secret    = "a-secret-that-is-not-printed"
)

// Bucket is an object store with one bucket.
type Bucket struct {
	t       *testing.T
	backend *s3mem.Backend
	// URL is where it listens.
	URL string

	mu    sync.Mutex
	fault func(w http.ResponseWriter, r *http.Request, next http.Handler)
}

// Start starts one, and sets the credentials of this process.
func Start(t *testing.T) *Bucket {
	t.Helper()
	b := &Bucket{t: t, backend: s3mem.New()}
	if err := b.backend.CreateBucket(t.Context(), Name); err != nil {
		t.Fatal(err)
	}
	whole := gofakes3.New(listing{b.backend}, gofakes3.WithV4Auth(map[string]string{AccessKey: Secret}), gofakes3.WithoutVersioning()).Server()
	var writing sync.Mutex // the library looks at a condition and writes in two steps
	store := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && (r.Header.Get("If-Match") != "" || r.Header.Get("If-None-Match") != "") {
			writing.Lock()
			defer writing.Unlock()
		}
		whole.ServeHTTP(w, r)
	})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		fault := b.fault
		b.mu.Unlock()
		if fault == nil {
			store.ServeHTTP(w, r)
			return
		}
		fault(w, r, store)
	}))
	t.Cleanup(srv.Close)
	b.URL = srv.URL
	return b
}

// listing takes an empty delimiter for none, as S3 does.
type listing struct{ *s3mem.Backend }

// ListBucket is that of the backend.
func (l listing) ListBucket(ctx context.Context, name string, prefix *gofakes3.Prefix, page gofakes3.ListBucketPage) (*gofakes3.ObjectList, error) {
	if prefix != nil && prefix.Delimiter == "" {
		prefix.HasDelimiter = false
	}
	return l.Backend.ListBucket(ctx, name, prefix, page)
}

// Environ is what a process needs to use it.
func Environ() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + AccessKey, "AWS_SECRET_ACCESS_KEY=" + Secret}
}

// Credentials writes a file of credentials, and returns what names it.
func Credentials(t *testing.T, secret string) (variable, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "credentials")
	text := "[default]\naws_access_key_id = " + AccessKey + "\naws_secret_access_key = " + secret + "\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return "AWS_SHARED_CREDENTIALS_FILE", path
}

// Fail has each request answered by f, which may pass it on; nil: none.
func (b *Bucket) Fail(f func(w http.ResponseWriter, r *http.Request, next http.Handler)) {
	b.mu.Lock()
	b.fault = f
	b.mu.Unlock()
}

// Cut ends the connection of a request without an answer, or after what was written of it.
func Cut() { panic(http.ErrAbortHandler) }

// Files are the names below a prefix.
func (b *Bucket) Files(prefix string) (names []string) {
	b.t.Helper()
	list, err := b.backend.ListBucket(b.t.Context(), Name, &gofakes3.Prefix{HasPrefix: true, Prefix: prefix}, gofakes3.ListBucketPage{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range list.Contents {
		names = append(names, c.Key)
	}
	return names
}

// Read returns a file, and Write replaces it.
func (b *Bucket) Read(name string) []byte {
	b.t.Helper()
	o, err := b.backend.GetObject(b.t.Context(), Name, name, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = o.Contents.Close() }()
	data, err := io.ReadAll(o.Contents)
	if err != nil {
		b.t.Fatal(err)
	}
	return data
}

// Write is described there.
func (b *Bucket) Write(name string, data []byte) {
	b.t.Helper()
	if _, err := b.backend.PutObject(b.t.Context(), Name, name, map[string]string{"Last-Modified": time.Now().UTC().Format(http.TimeFormat)}, bytes.NewReader(data), int64(len(data))); err != nil {
		b.t.Fatal(err)
	}
}

// Remove removes a file.
func (b *Bucket) Remove(name string) {
	b.t.Helper()
	if _, err := b.backend.DeleteObject(b.t.Context(), Name, name); err != nil {
		b.t.Fatal(err)
	}
}

// Of reports whether a request is for files whose names have a part.
func Of(r *http.Request, method, part string) bool {
	return r.Method == method && strings.Contains(r.URL.Path, part)
}
