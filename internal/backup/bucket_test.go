package backup

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/backup/buckettest"
)

// The first requests of each kind fail: their connection is cut before the answer, after part of a body that was sent, in the middle of what is
// read, or the server says that it cannot. Each is sent again, and what is stored and read is whole.
func TestBucketRequestsAreSentAgain(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(w http.ResponseWriter, r *http.Request, next http.Handler){
		"500": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusInternalServerError)
		},
		"503": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusServiceUnavailable)
		},
		"cut": func(http.ResponseWriter, *http.Request, http.Handler) { buckettest.Cut() },
		"cut within a body": func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
			_, _ = io.CopyN(io.Discard, r.Body, 10)
			buckettest.Cut()
		},
		"the answer is lost": func(_ http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(&nowhere{}, r)
			buckettest.Cut()
		},
		"cut within an answer": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(&cutAfter{ResponseWriter: w, left: 1000}, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := buckettest.Start(t)
			var mu sync.Mutex
			seen := map[string]int{}
			b.Fail(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				mu.Lock()
				what := r.Method + r.URL.Path
				seen[what]++
				first := seen[what] == 1
				mu.Unlock()
				if first {
					fault(w, r, next)
					return
				}
				next.ServeHTTP(w, r)
			})
			p := bucketOf(t, b)
			p.lease.lasts = time.Hour
			s := opened(t, p)
			text := strings.Repeat("0123456789", 20_000)
			o := kept(t, s, text)
			m := committed(t, s, 1, o, kept(t, s, "b"))
			reader := ReadStore(p)
			if err := reader.Check(t.Context(), m, nil); err != nil {
				t.Fatal(err)
			}
			if data, err := reader.Read(t.Context(), o); err != nil || string(data) != text {
				t.Errorf("%d bytes, %v", len(data), err)
			}
			if newest, err := reader.Newest(t.Context()); err != nil || newest.Name() != m.Name() {
				t.Errorf("the newest: %v, %v", newest, err)
			}
			if got := string(b.Read(p.key(o.name()))); got != text {
				t.Errorf("%d bytes are stored", len(got))
			}
		})
	}
}

// nowhere takes an answer that is lost.
type nowhere struct{ h http.Header }

func (n *nowhere) Header() http.Header {
	if n.h == nil {
		n.h = http.Header{}
	}
	return n.h
}
func (*nowhere) Write(p []byte) (int, error) { return len(p), nil }
func (*nowhere) WriteHeader(int)             {}

// cutAfter ends the connection after so many bytes of an answer.
type cutAfter struct {
	http.ResponseWriter
	left int
}

func (c *cutAfter) Write(p []byte) (int, error) {
	if len(p) <= c.left {
		c.left -= len(p)
		return c.ResponseWriter.Write(p)
	}
	_, _ = c.ResponseWriter.Write(p[:c.left])
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	buckettest.Cut()
	return 0, nil
}

// An object store that goes on to fail is named, with the file, after a bounded number of requests. It is not damage, and nothing is half there.
func TestBucketThatFailsIsNamed(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(w http.ResponseWriter, r *http.Request, next http.Handler){
		"500": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
			w.WriteHeader(http.StatusInternalServerError)
		},
		"cut": func(http.ResponseWriter, *http.Request, http.Handler) { buckettest.Cut() },
		"cut within a body": func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
			_, _ = io.CopyN(io.Discard, r.Body, 10)
			buckettest.Cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := buckettest.Start(t)
			p := bucketOf(t, b)
			p.lease.lasts, p.lease.renew = time.Hour, time.Hour
			s := opened(t, p)
			o := kept(t, s, "there")
			var asked atomic.Int64
			b.Fail(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
				asked.Add(1)
				fault(w, r, next)
			})
			new := strings.Repeat("not there", 100)
			if _, err := s.Put(t.Context(), []byte(new)); !errors.Is(err, ErrObjectStore) || !strings.Contains(err.Error(), "s3://backups/of/ours/objects/") {
				t.Errorf("writing: %v", err)
			}
			if n := asked.Load(); n > tries {
				t.Errorf("it was asked %d times", n)
			}
			m := example()
			m.Ledger = o
			if err := ReadStore(p).Check(t.Context(), m, nil); !errors.Is(err, ErrObjectStore) || errors.Is(err, ErrDamaged) {
				t.Errorf("reading: %v", err)
			}
			if err := s.Commit(t.Context(), m); !errors.Is(err, ErrObjectStore) {
				t.Errorf("the manifest: %v", err)
			}
			b.Fail(nil)
			if s.has(Object{digest([]byte(new)), int64(len(new))}) {
				t.Error("the store takes it for kept")
			}
			for _, f := range b.Files("") {
				if strings.HasSuffix(f, Suffix) || strings.Contains(f, digest([]byte(new))) {
					t.Errorf("%s is there", f)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			b.Fail(func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
				_, _ = io.Copy(io.Discard, r.Body) // until then it is not noticed that the client is gone
				cancel()
				<-r.Context().Done()
			})
			if _, err := s.Put(ctx, []byte(new)); !errors.Is(err, context.Canceled) {
				t.Errorf("one that never answers: %v", err)
			}
			b.Fail(nil)
		})
	}
}

// Bytes that were changed on their way are refused by the object store.
func TestBucketRefusesChangedBytes(t *testing.T) {
	t.Parallel()
	b := buckettest.Start(t)
	p := bucketOf(t, b)
	p.lease.lasts, p.lease.renew = time.Hour, time.Hour
	s := opened(t, p)
	b.Fail(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if buckettest.Of(r, http.MethodPut, objectsDir) {
			r.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), io.LimitReader(skipping(r.Body), r.ContentLength-1)))
		}
		next.ServeHTTP(w, r)
	})
	if _, err := s.Put(t.Context(), []byte("as it was sent")); !errors.Is(err, ErrObjectStore) {
		t.Errorf("changed on the way: %v", err)
	}
	b.Fail(nil)
	if names := b.Files("of/ours/objects"); len(names) != 0 {
		t.Errorf("there is %v", names)
	}
}

// skipping is a reader without its first byte.
func skipping(r io.Reader) io.Reader {
	_, _ = io.ReadFull(r, make([]byte, 1))
	return r
}

// Credentials that are refused and a bucket that is not there are said, with what to do, and without the secret.
func TestBucketRefusals(t *testing.T) {
	b := buckettest.Start(t)
	open := func(cfg BucketConfig) error {
		cfg.Endpoint, cfg.Region = b.URL, "us-east-1"
		p, err := OpenBucket(cfg)
		if err != nil {
			return err
		}
		s, err := OpenStore(t.Context(), p)
		if err == nil {
			_ = s.Close(t.Context())
		}
		return err
	}
	ours := BucketConfig{URL: BucketScheme + buckettest.Name}
	for _, c := range []struct {
		name, secret, url, want string
	}{
		{"none", "", ours.URL, "AWS_ACCESS_KEY_ID"},
		{"wrong", "another-secret", ours.URL, "refuses these credentials"},
		{"right", buckettest.Secret, ours.URL, ""},
		{"another bucket", buckettest.Secret, BucketScheme + "anothers", "there is no bucket anothers: make it first"},
		{"no bucket", buckettest.Secret, BucketScheme, "is not s3://BUCKET/PREFIX"},
		{"a prefix that leads out", buckettest.Secret, BucketScheme + "backups/a/../../b", "the prefix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, v := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
				t.Setenv(v, "")
			}
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
			t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
			if c.secret != "" {
				t.Setenv(buckettest.Credentials(t, c.secret))
			}
			err := open(BucketConfig{URL: c.url})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v", err)
			}
			if err != nil && c.secret != "" && strings.Contains(err.Error(), c.secret) {
				t.Errorf("it has the secret: %v", err)
			}
		})
	}
	for _, endpoint := range []string{"minio:9000", "ftp://x", "https://", "https://a:b@host", "https://host/bucket", "https://host?x=1"} {
		if _, err := OpenBucket(BucketConfig{URL: ours.URL, Endpoint: endpoint}); err == nil || strings.Contains(err.Error(), "a:b") {
			t.Errorf("endpoint %s: %v", endpoint, err)
		}
	}
}

// Of two processes one writes into a bucket. What a killed one held becomes free by itself, and one that stood still for longer makes no backup.
func TestBucketLease(t *testing.T) {
	t.Parallel()
	b := buckettest.Start(t)
	quick := func(renew, lasts time.Duration) *Bucket {
		p := bucketOf(t, b)
		p.lease = leaseTimes{renew, lasts}
		return p
	}
	first := opened(t, quick(5*time.Millisecond, time.Hour))
	if _, err := OpenStore(t.Context(), quick(100*time.Millisecond, time.Hour)); !errors.Is(err, ErrBusy) {
		t.Errorf("a second process: %v", err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names := b.Files(""); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
	// One that does not write its file: it was stopped, or killed.
	for n, c := range []struct {
		name string
		do   func(stopped *Store, m *Manifest) error
	}{
		{"a backup", func(stopped *Store, m *Manifest) error { return stopped.Commit(t.Context(), m) }},
		{"old ones are removed", func(stopped *Store, _ *Manifest) error {
			removed, err := stopped.Keep(t.Context(), 1)
			if removed > 0 {
				t.Errorf("%d backups that the other may build upon are gone", removed)
			}
			return err
		}},
	} {
		stopped := opened(t, quick(time.Hour, time.Millisecond))
		o := kept(t, stopped, "x")
		for hour := range 3 {
			committed(t, stopped, 10*n+hour, o, o)
		}
		soon := quick(2*time.Millisecond, 10*time.Millisecond)
		next := opened(t, soon)
		soon.lease.lasts = time.Hour // it has the right, and its end has time
		m := example()
		m.Ledger = o
		if err := c.do(stopped, m); !errors.Is(err, ErrBusy) {
			t.Errorf("%s by one that lost its right: %v", c.name, err)
		}
		if err := stopped.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := next.Commit(t.Context(), m); err != nil {
			t.Errorf("the other: %v", err)
		}
		if err := next.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// What one holds it need not ask for again before each file that it removes.
func TestBucketLeaseIsAskedForOnce(t *testing.T) {
	t.Parallel()
	b := buckettest.Start(t)
	p := bucketOf(t, b)
	p.lease = leaseTimes{time.Hour, time.Hour}
	s := opened(t, p)
	for n := range 100 {
		kept(t, s, fmt.Sprint(n))
	}
	o := kept(t, s, "of the newest backup")
	committed(t, s, 1, o, o)
	asked := 0
	var mu sync.Mutex
	b.Fail(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if buckettest.Of(r, http.MethodPut, lockName) {
			mu.Lock()
			asked++
			mu.Unlock()
		}
		next.ServeHTTP(w, r)
	})
	if _, err := s.Keep(t.Context(), 1); err != nil || asked != 1 || len(b.Files(p.key(objectsDir))) != 1 {
		t.Errorf("%v; it was asked for %d times, %d files are left", err, asked, len(b.Files(p.key(objectsDir))))
	}
}

// Of many processes that begin at once one gets the right to write, and of many that find it standing still too.
func TestBucketLeaseIsOfOne(t *testing.T) {
	t.Parallel()
	b := buckettest.Start(t)
	p := bucketOf(t, b)
	etag := ""
	for _, what := range []string{"new", "standing still"} {
		var mu sync.Mutex
		var won []*lease
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				l := &lease{b: p, id: rand.Text()}
				if err := l.write(t.Context(), etag); err == nil {
					mu.Lock()
					won = append(won, l)
					mu.Unlock()
				} else if !errors.Is(err, errTaken) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%s: %d have it", what, len(won))
		}
		if text, now, err := p.holder(t.Context()); err != nil || now != won[0].etag || !strings.HasPrefix(text, won[0].id) {
			t.Errorf("%s: it is of %q, %v", what, text, err)
		}
		etag = won[0].etag
	}
}

// A stage sends what is new, and fetches what it has.
func TestStageOfABucket(t *testing.T) {
	t.Parallel()
	b := buckettest.Start(t)
	p := bucketOf(t, b)
	p.lease = leaseTimes{time.Hour, time.Hour}
	s := opened(t, p)
	files := t.TempDir()
	for round := range 2 {
		st, err := openStage(t.Context(), s, files)
		if err != nil {
			t.Fatal(err)
		}
		var of Stream
		for n := range 5 + round {
			chunk := []byte(strings.Repeat(string(rune('a'+n)), 1000))
			o, err := st.put(t.Context(), chunk)
			if err != nil {
				t.Fatal(err)
			}
			of.Chunks = append(of.Chunks, Chunk{uint64(n), o})
		}
		if n, want := len(st.near.there), []int{5, 1}[round]; n != want {
			t.Errorf("round %d: %d chunks are staged, want %d", round, n, want)
		}
		if err := st.send(t.Context()); err != nil {
			t.Fatal(err)
		}
		st.close(t.Context())
		if st, err = openStage(t.Context(), ReadStore(p), files); err != nil {
			t.Fatal(err)
		}
		if err := st.fetch(t.Context(), &of); err != nil {
			t.Fatal(err)
		}
		for n, f := range of.Chunks {
			if chunk, err := st.near.Read(t.Context(), f.Object); err != nil || chunk[0] != byte('a'+n) {
				t.Errorf("chunk %d: %q, %v", n, chunk, err)
			}
		}
		b.Remove(p.key(of.Chunks[0].name()))
		st.close(t.Context())
		if st, err = openStage(t.Context(), ReadStore(p), files); err != nil {
			t.Fatal(err)
		}
		if err := st.fetch(t.Context(), &of); !errors.Is(err, ErrDamaged) {
			t.Errorf("a chunk that is gone: %v", err)
		}
		st.close(t.Context())
		b.Write(p.key(of.Chunks[0].name()), []byte(strings.Repeat("a", 1000)))
	}
}
