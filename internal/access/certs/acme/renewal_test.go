package acme

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/almanac-events/almanac/internal/access/certs"
	"github.com/almanac-events/almanac/internal/access/certs/acme/acmetest"
	"github.com/almanac-events/almanac/internal/access/certs/certstest"
)

// keptFor puts a certificate that ends after so long where an issuer keeps those of a host.
func keptFor(t *testing.T, dir, host string, left time.Duration) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	certPEM, keyPEM := certstest.New(t, "ca").Issue(t, host, time.Now().Add(left), host)
	if err := os.WriteFile(filepath.Join(dir, host), append(keyPEM, certPEM...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLate(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	began := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		life, renews, late time.Duration // after it began
	}{
		"90 days":  {90 * day, 60 * day, 70 * day},
		"45 days":  {45 * day, 30 * day, 35 * day},
		"a year":   {365 * day, 335 * day, 345 * day},
		"one hour": {time.Hour, 40 * time.Minute, 46*time.Minute + 40*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &x509.Certificate{NotBefore: began, NotAfter: began.Add(c.life)}
			if at := renews(leaf); !at.Equal(began.Add(c.renews)) {
				t.Errorf("it is renewed from %s", at)
			}
			if at := began.Add(c.late); late(leaf, at) || !late(leaf, at.Add(time.Second)) || !late(leaf, leaf.NotAfter.Add(day)) || late(leaf, renews(leaf)) {
				t.Errorf("it is not late from %s", at)
			}
		})
	}
}

// A renewal that fails is said, with the authority's reason, and once: what is there stays in use meanwhile.
func TestRenewalThatFails(t *testing.T) {
	t.Parallel()
	const host = "logs.almanac.test"
	refuses := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many certificates already issued"}`)
	}))
	t.Cleanup(refuses.Close)
	roots := x509.NewCertPool()
	roots.AddCert(refuses.Certificate())
	for name, c := range map[string]struct{ directory, why string }{
		"it refuses": {refuses.URL + "/dir", "too many certificates already issued"},
		"it is away": {"https://127.0.0.1:1/dir", "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "acme")
			keptFor(t, dir, host, 10*time.Minute)
			said := make(chan error, 100)
			i, err := Open(Config{Hosts: []string{host}, Dir: dir, Directory: c.directory, Roots: roots, Every: 10 * time.Millisecond, OnError: func(err error) { said <- err }})
			if err != nil {
				t.Fatal(err)
			}
			i.Serving()
			deadline := time.After(time.Minute)
			for known := false; !known; {
				select {
				case err := <-said: // the first may come before the authority was asked
					known = strings.Contains(err.Error(), c.why)
					for _, part := range []string{host, "its renewal fails since", "port 443", i.Ends().UTC().Format(time.RFC3339)} {
						if !strings.Contains(err.Error(), part) {
							t.Errorf("no %q in %v", part, err)
						}
					}
				case <-deadline:
					t.Fatal("the authority's reason is not said")
				}
			}
			if _, err := i.certificate(&tls.ClientHelloInfo{ServerName: host}); err != nil || i.Missing() != 0 {
				t.Errorf("what is there is no longer shown: %v", err)
			}
			i.Close()
			i.wg.Wait()
			if len(said) > 0 {
				t.Errorf("it is said again: %v", <-said)
			}
		})
	}
}

// A certificate that was renewed counts although no client was shown it.
func TestRenewed(t *testing.T) {
	const host = "logs.almanac.test"
	a := acmetest.Start(t)
	roots, err := certs.Pool(a.DirectoryPEM)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "acme")
	keptFor(t, dir, host, 10*time.Minute)
	i, err := Open(Config{Hosts: []string{host}, Dir: dir, Directory: a.Directory, Roots: roots})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	serve(t, listen(t, a.ProvesAt), i.TLS())
	i.Serving()
	issued(t, i)
	until(t, "renewed certificate", func() bool { return time.Until(i.Ends()) > 24*time.Hour })
}

// Ten thousand names that clients make up leave nothing in memory, and the authority is not asked.
func TestMadeUpNames(t *testing.T) {
	const host, names = "logs.almanac.test", 10_000
	var asked atomic.Int64
	authority := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(authority.Close)
	dir := filepath.Join(t.TempDir(), "acme")
	keptFor(t, dir, host, 90*24*time.Hour)
	i, err := Open(Config{Hosts: []string{host}, Dir: dir, Directory: authority.URL + "/dir", OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	i.Serving()
	issued(t, i)
	held := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := held()
	for n := range names {
		name := fmt.Sprintf("%d.%s.example.com", n, strings.Repeat("a", 40))
		for _, hello := range []*tls.ClientHelloInfo{{ServerName: name}, {ServerName: name, SupportedProtos: []string{acme.ALPNProto}}} {
			if pair, err := i.certificate(hello); pair != nil || !errors.Is(err, ErrHost) {
				t.Fatalf("%s: %v, %v", name, pair != nil, err)
			}
		}
	}
	if after := held(); after > before+names*100/2 { // a name alone is of 50 bytes
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the authority was asked %d times", n)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
	if _, err := i.certificate(&tls.ClientHelloInfo{ServerName: host}); err != nil {
		t.Errorf("our own name: %v", err)
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		body, want string
	}{
		"a problem":             {429, `{"type":"urn:ietf:params:acme:error:rateLimited","detail":"too many"}`, "the authority answered 429 too many"},
		"an error without one":  {502, `<html>`, "the authority answered 502"},
		"an old nonce":          {400, `{"type":"urn:ietf:params:acme:error:badNonce","detail":"x"}`, ""},
		"an order":              {200, `{"status":"pending"}`, ""},
		"a failed order":        {200, `{"status":"invalid","error":{"detail":"no such name"}}`, "the authority refused: no such name"},
		"a failed challenge":    {200, `{"status":"invalid","challenges":[{"type":"dns-01"},{"type":"tls-alpn-01","error":{"detail":"192.0.2.1: Connection refused"}}]}`, "the authority refused: 192.0.2.1: Connection refused"},
		"what is not JSON":      {200, `x`, ""},
		"words for a terminal":  {400, "{\"detail\":\"a\\u001b[2Jb\"}", "the authority answered 400 a [2Jb"},
		"more words than a log": {400, `{"detail":"` + strings.Repeat("é", 1000) + `"}`, "the authority answered 400 " + strings.Repeat("é", maxSaid-len("the authority answered 400 ")) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := refusal(c.status, []byte(c.body)); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// What keeps the cause passes an answer on as it is, also one that is longer than what is looked at, and one that breaks off.
func TestLastCausePassesAnswersOn(t *testing.T) {
	t.Parallel()
	long := `{"status":"valid","x":"` + strings.Repeat("y", 2*maxProblem) + `"}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/cut" {
			w.Header().Set("Content-Length", "1000")
		}
		_, _ = io.WriteString(w, long[:min(len(long), map[string]int{"/long": len(long), "/cut": 10}[r.URL.Path])])
	}))
	t.Cleanup(s.Close)
	l := &lastCause{next: http.DefaultTransport}
	for path, whole := range map[string]bool{"/long": true, "/empty": true, "/cut": false} {
		resp, err := (&http.Client{Transport: l}).Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if (err == nil) != whole || path == "/long" && string(body) != long {
			t.Errorf("%s: %d bytes, %v", path, len(body), err)
		}
	}
	if why := l.cause(); why != "" {
		t.Errorf("a cause: %s", why)
	}
}
