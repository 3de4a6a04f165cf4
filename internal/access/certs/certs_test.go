package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/internal/access/certs/certstest"
)

// subject is the one of the certificate that a new connection gets.
func subject(t *testing.T, f *Files) string {
	t.Helper()
	c, err := f.TLS().GetConfigForClient(nil)
	if err != nil {
		t.Fatal(err)
	}
	return c.Certificates[0].Leaf.Subject.CommonName
}

// A pair that is renewed, half renewed, broken, ended, gone and mended while it is followed: the next connection gets the newest
// that fits, and what is wrong for two looks is said once.
func TestRenewedFilesAreFollowed(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	cert, key := ca.Files(t, dir, "server")
	hour := time.Now().Add(time.Hour).Round(0) // of the calendar alone: the bubble has a clock of its own
	c2, k2 := ca.Issue(t, "second", hour)
	c3, k3 := ca.Issue(t, "third", hour)
	synctest.Test(t, func(t *testing.T) {
		// The clock of the bubble stands in 2000, when these certificates are not valid yet.
		<-time.After(time.Until(hour.Add(-30 * time.Minute)))
		ended, endedKey := ca.Issue(t, "ended", time.Now().Add(-time.Minute))
		var mu sync.Mutex
		var heard []error
		f, err := Open(Config{Cert: cert, Key: key, OnError: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, err)
		}})
		said := func() []error {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(heard)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, step := range []struct {
			name      string
			cert, key []byte
			want      string
			errors    int
			says      string
		}{
			{"as it was", nil, nil, "server", 0, ""},
			{"renewed", c2, k2, "second", 0, ""},
			{"the certificate alone", c3, nil, "second", 1, "private key"},
			{"and its key", nil, k3, "third", 1, ""},
			{"no certificate", []byte("soon"), nil, "third", 2, "PEM"},
			{"one that ended", ended, endedKey, "third", 3, "renew it"},
			{"renewed again", c2, k2, "second", 3, ""},
		} {
			// One that is written within the same look is taken whole; the stamps of a file are those of the disk.
			if step.cert != nil {
				certstest.Write(t, cert, step.cert)
			}
			if step.key != nil {
				certstest.Write(t, key, step.key)
			}
			<-time.After(5 * time.Second)
			synctest.Wait()
			if got := subject(t, f); got != step.want {
				t.Errorf("%s: a connection gets %s, want %s", step.name, got, step.want)
			}
			if said := said(); len(said) != step.errors || step.says != "" && !strings.Contains(said[len(said)-1].Error(), step.says) {
				t.Errorf("%s: said was %v", step.name, said)
			}
		}
		if err := os.Remove(key); err != nil {
			t.Fatal(err)
		}
		<-time.After(5 * time.Second)
		synctest.Wait()
		if got := subject(t, f); got != "second" || len(said()) != 4 {
			t.Errorf("without a key: %s, %v", got, said())
		}
		for _, err := range said() {
			if strings.Contains(err.Error(), "BEGIN") {
				t.Errorf("an error has what a file holds: %v", err)
			}
		}
	})
}

// A file of a CA that is written in two steps is taken once it is whole, for its first half is one of a CA too.
func TestFilesAreTakenWhole(t *testing.T) {
	t.Parallel()
	old, first, second := certstest.New(t, "old"), certstest.New(t, "first"), certstest.New(t, "second")
	dir := t.TempDir()
	cert, key := old.Files(t, dir, "server")
	caFile := certstest.Write(t, filepath.Join(dir, "ca.crt"), old.PEM)
	half := first.Pool()
	whole := first.Pool()
	whole.AppendCertsFromPEM(second.PEM)
	begin := time.Now().Round(0) // the bubble has a clock of its own
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Until(begin))
		f, err := Open(Config{Cert: cert, Key: key, ClientCA: caFile, OnError: func(err error) { t.Errorf("said: %v", err) }})
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		trusted := func() *x509.CertPool { return f.now.Load().ClientCAs }
		<-time.After(look - time.Millisecond)
		certstest.Write(t, caFile, first.PEM)
		<-time.After(look / 2) // it was looked at
		synctest.Wait()
		certstest.Write(t, caFile, slices.Concat(first.PEM, second.PEM))
		for range 40 {
			<-time.After(look / 10)
			synctest.Wait()
			if trusted().Equal(half) {
				t.Fatal("half of a file was taken")
			}
		}
		if !trusted().Equal(whole) {
			t.Error("the whole file was not taken")
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t, "ca")
	dir := t.TempDir()
	cert, key := ca.Files(t, dir, "server")
	_, other := ca.Files(t, dir, "other")
	c, k := ca.Issue(t, "ended", time.Now().Add(-time.Minute))
	ended, endedKey := certstest.Write(t, filepath.Join(dir, "ended.crt"), c), certstest.Write(t, filepath.Join(dir, "ended.key"), k)
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cfg  Config
		says string
	}{
		"a pipe":        {Config{Cert: cert, Key: pipe}, "a pipe"},
		"no file":       {Config{Cert: filepath.Join(dir, "none"), Key: key}, "no such file"},
		"another's key": {Config{Cert: cert, Key: other}, "private key"},
		"swapped":       {Config{Cert: key, Key: cert}, "PEM"},
		"ended":         {Config{Cert: ended, Key: endedKey}, "renew it"},
		"a key as a CA": {Config{Cert: cert, Key: key, ClientCA: key}, "the file of the CA"},
		"a directory":   {Config{Cert: dir, Key: key}, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if f, err := Open(c.cfg); err == nil || !strings.Contains(err.Error(), c.says) {
				if err == nil {
					f.Close()
				}
				t.Errorf("%v", err)
			}
		})
	}
}

// A session of a client whose CA was taken away is not resumed as that client: the CA of now decides, also of what an earlier one took.
func TestSessionsEndWithTheirCA(t *testing.T) {
	t.Parallel()
	for name, version := range map[string]uint16{"TLS 1.2": tls.VersionTLS12, "TLS 1.3": tls.VersionTLS13} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ca, other := certstest.New(t, "ca"), certstest.New(t, "other")
			dir := t.TempDir()
			cert, key := ca.Files(t, dir, "server")
			caFile := certstest.Write(t, filepath.Join(dir, "ca.crt"), ca.PEM)
			said := make(chan error, 100)
			f, err := Open(Config{Cert: cert, Key: key, ClientCA: caFile, Every: 10 * time.Millisecond, OnError: func(err error) { said <- err }})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(f.Close)
			l, err := tls.Listen("tcp", "127.0.0.1:0", f.TLS())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go func() { // answers with how many certificates the client showed, for its session too
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					go func() {
						defer func() { _ = conn.Close() }()
						c := conn.(*tls.Conn)
						if c.Handshake() == nil {
							_, _ = c.Write([]byte{'0' + byte(len(c.ConnectionState().PeerCertificates))})
						}
					}()
				}
			}()
			c, k := ca.Issue(t, "client", time.Now().Add(time.Hour))
			pair, err := tls.X509KeyPair(c, k)
			if err != nil {
				t.Fatal(err)
			}
			client := &tls.Config{RootCAs: ca.Pool(), Certificates: []tls.Certificate{pair}, MaxVersion: version, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
			ask := func() (shown string, resumed bool, err error) {
				conn, err := tls.Dial("tcp", l.Addr().String(), client)
				if err != nil {
					return "", false, err
				}
				defer func() { _ = conn.Close() }()
				text, err := io.ReadAll(conn) // what comes last in TLS 1.3 is the session
				return string(text), conn.ConnectionState().DidResume, err
			}
			for i, want := range []bool{false, true} {
				if shown, resumed, err := ask(); err != nil || shown != "1" || resumed != want {
					t.Fatalf("connection %d: shown %q, resumed %t, %v", i, shown, resumed, err)
				}
			}
			before := f.now.Load()
			certstest.Write(t, caFile, other.PEM)
			deadline := time.After(time.Minute)
			for f.now.Load() == before {
				select {
				case err := <-said:
					t.Log(err) // of a file that was read while it was written
				case <-deadline:
					t.Fatal("the file of the CA is not read again")
				case <-time.After(time.Millisecond):
				}
			}
			if shown, resumed, err := ask(); resumed || shown == "1" {
				t.Errorf("after its CA was taken away: shown %q, resumed %t, %v", shown, resumed, err)
			}
		})
	}
}

// A client's certificate is verified where there is a CA, asked for where it is required, and TLS is 1.2 at least.
func TestClients(t *testing.T) {
	t.Parallel()
	ca, foreign := certstest.New(t, "ca"), certstest.New(t, "foreign")
	dir := t.TempDir()
	cert, key := ca.Files(t, dir, "server")
	caFile := certstest.Write(t, filepath.Join(dir, "ca.crt"), ca.PEM)
	pair := func(ca *certstest.CA) []tls.Certificate {
		c, k := ca.Issue(t, "client", time.Now().Add(time.Hour))
		p, err := tls.X509KeyPair(c, k)
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{p}
	}
	for name, c := range map[string]struct {
		cfg    Config
		client *tls.Config
		ok     bool
		shown  int
	}{
		"none asked for":      {Config{}, &tls.Config{}, true, 0},
		"none shown":          {Config{ClientCA: caFile}, &tls.Config{}, true, 0},
		"one of the CA":       {Config{ClientCA: caFile}, &tls.Config{Certificates: pair(ca)}, true, 1},
		"one of another CA":   {Config{ClientCA: caFile}, &tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair(foreign)[0], nil }}, false, 0},
		"required, not there": {Config{ClientCA: caFile, Require: true}, &tls.Config{}, false, 0},
		"required":            {Config{ClientCA: caFile, Require: true}, &tls.Config{Certificates: pair(ca)}, true, 1},
		"TLS 1.1":             {Config{}, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, false, 0},
		"TLS 1.2":             {Config{}, &tls.Config{MaxVersion: tls.VersionTLS12}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := c.cfg
			cfg.Cert, cfg.Key = cert, key
			f, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			client := c.client.Clone()
			client.RootCAs, client.ServerName = ca.Pool(), "localhost"
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			shown, done := 0, make(chan error, 1)
			go func() {
				raw, err := l.Accept()
				if err != nil {
					done <- err
					return
				}
				server := tls.Server(raw, f.TLS())
				err = server.HandshakeContext(t.Context())
				shown = len(server.ConnectionState().VerifiedChains)
				_ = server.Close()
				done <- err
			}()
			raw, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			conn := tls.Client(raw, client)
			defer func() { _ = conn.Close() }()
			_, clientErr := conn.Read(make([]byte, 1)) // its end, or why there is no connection
			err = <-done
			if ok := err == nil && errors.Is(clientErr, io.EOF); ok != c.ok {
				t.Errorf("%v, %v", err, clientErr)
			}
			if shown != c.shown {
				t.Errorf("%d chains", shown)
			}
		})
	}
}
