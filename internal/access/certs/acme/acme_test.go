package acme

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/acme"

	"github.com/almanac-events/almanac/internal/access/certs"
	"github.com/almanac-events/almanac/internal/access/certs/acme/acmetest"
	"github.com/almanac-events/almanac/internal/access/certs/certstest"
)

// serve answers each connection of TLS with a word, until the test ends.
func serve(t *testing.T, l net.Listener, c *tls.Config) {
	t.Helper()
	secure := tls.NewListener(l, c)
	t.Cleanup(func() { _ = secure.Close() })
	go func() {
		for {
			conn, err := secure.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = conn.Write([]byte("x"))
				_ = conn.Close()
			}()
		}
	}()
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// shown returns the certificate that a client sees, which verifies it.
func shown(address string, c *tls.Config) (*x509.Certificate, error) {
	conn, err := tls.Dial("tcp", address, c)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Read(make([]byte, 1)); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return conn.ConnectionState().PeerCertificates[0], nil
}

// An authority of one's own issues certificates once a listener serves, and not because a client asks. They are kept in files of their
// owner alone, and serve after a restart while the authority is away.
func TestIssued(t *testing.T) {
	const host, other = "logs.almanac.test", "otlp.almanac.test"
	a := acmetest.Start(t)
	l := listen(t, a.ProvesAt)
	roots, err := certs.Pool(a.DirectoryPEM)
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 100)
	cfg := Config{Hosts: []string{host, strings.ToUpper(other) + ".", other}, Dir: filepath.Join(t.TempDir(), "acme"), Directory: a.Directory, Roots: roots, OnError: func(err error) { failed <- err }}
	i, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	serve(t, l, i.TLS())
	address := l.Addr().String()
	if c, err := shown(address, a.Trust(host)); err == nil {
		t.Errorf("before a listener served, a client is shown %s", c.Subject)
	}
	if n := a.Asked.Load(); n != 0 || !i.Ends().IsZero() {
		t.Errorf("the authority was asked %d times because of a client; the end is %s", n, i.Ends())
	}
	if n := i.Missing(); n != 2 {
		t.Errorf("%d hosts lack a certificate at the start", n)
	}
	i.Serving()
	i.Serving()
	issued(t, i)
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
	for ask, want := range map[string]string{host: host, other: other, strings.ToUpper(other): other} {
		c, err := shown(address, a.Trust(ask))
		if err != nil || len(c.DNSNames) != 1 || c.DNSNames[0] != want {
			t.Errorf("%s: %v, %v", ask, c, err)
		}
	}
	unnamed := a.Trust("")
	unnamed.InsecureSkipVerify = true
	if c, err := shown(address, unnamed); err != nil || c.DNSNames[0] != host {
		t.Errorf("a client that names no host: %v, %v", c, err)
	}
	asked := a.Asked.Load()
	for _, ask := range []string{"evil.example", "logs.almanac.test.evil.example", "localhost"} {
		if c, err := shown(address, a.Trust(ask)); err == nil {
			t.Errorf("%s is shown %s", ask, c.DNSNames)
		}
	}
	if n := a.Asked.Load(); n != asked {
		t.Errorf("strange names made %d requests to the authority", n-asked)
	}
	if left := time.Until(i.Ends()); left < 24*time.Hour {
		t.Errorf("it ends in %s", left)
	}
	modes(t, cfg.Dir)
	i.Close()

	cfg.Directory = "https://127.0.0.1:1/dir" // away
	again, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	again.Serving()
	issued(t, again)
	l = listen(t, "127.0.0.1:0")
	serve(t, l, again.TLS())
	if _, err := shown(l.Addr().String(), a.Trust(other)); err != nil {
		t.Errorf("after a restart without the authority: %v", err)
	}
}

// issued waits until each host has a certificate.
func issued(t *testing.T, i *Issuer) {
	t.Helper()
	until(t, "a certificate of each host", func() bool { return i.Missing() == 0 })
}

// until waits for a condition.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("no %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func modes(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %04o", path, info.Mode().Perm())
		}
		files++
		return err
	})
	if err != nil || files < 4 { // itself, the account, two hosts
		t.Errorf("%d files: %v", files, err)
	}
}

// An authority that does not answer is said, and asked again by itself only after minutes.
func TestAuthorityIsAway(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "acme")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	said := make(chan error, 100)
	i, err := Open(Config{Hosts: []string{"logs.example.com"}, Dir: dir, Directory: "https://127.0.0.1:1/dir", OnError: func(err error) { said <- err }})
	if err != nil {
		t.Fatal(err)
	}
	i.Serving()
	select {
	case err := <-said:
		if !strings.Contains(err.Error(), "logs.example.com") || !strings.Contains(err.Error(), "port 443") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing is said")
	}
	i.Close()
	i.wg.Wait()
	if len(said) > 0 {
		t.Errorf("it was asked again at once: %v", <-said)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// A client that pretends to be the authority is refused: by a name of ours while nothing is being proved, by another name before anything
// is looked for. A file that is there under that name is not shown.
func TestStrangersAtTheChallenge(t *testing.T) {
	t.Parallel()
	const own, strange = "logs.almanac.test", "evil.example"
	dir := filepath.Join(t.TempDir(), "acme")
	i, err := Open(Config{Hosts: []string{own}, Dir: dir, Directory: "https://127.0.0.1:1/dir", OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	certPEM, keyPEM := certstest.New(t, "ca").Issue(t, strange, time.Now().Add(time.Hour))
	if err := os.WriteFile(filepath.Join(dir, strange+"+token"), append(keyPEM, certPEM...), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, refused := range map[string]bool{strange: true, "": true, "logs.almanac.test.evil.example": true, "../" + strange: true, "localhost": true, strings.Repeat("a.", 120) + "example": true, own: false} {
		c, err := i.certificate(&tls.ClientHelloInfo{ServerName: name, SupportedProtos: []string{acme.ALPNProto}})
		if c != nil || err == nil || errors.Is(err, ErrHost) != refused {
			t.Errorf("%.40q: %v, %v", name, c != nil, err)
		}
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, h := range []string{"", "localhost", "127.0.0.1", "::1", "*.example.com", "a_b.example.com", "logs.example.com:443", "logs.example.com/x", "x@logs.example.com", "bücher.example.com"} {
		if err := Check([]string{h}, ""); err == nil {
			t.Errorf("%q may be a host", h)
		}
	}
	for _, d := range []string{"http://ca.example/dir", "ca.example", "https:///dir"} {
		if err := Check([]string{"logs.example.com"}, d); err == nil {
			t.Errorf("%q may be a directory", d)
		}
	}
	if err := Check([]string{"logs.example.com", "otlp.example.com"}, acme.LetsEncryptURL); err != nil {
		t.Error(err)
	}
	if err := Check(make([]string, maxHosts+1), ""); err == nil {
		t.Error("too many hosts")
	}
}
