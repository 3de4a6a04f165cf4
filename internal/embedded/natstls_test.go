package embedded_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/certs"
	"github.com/almanac-events/almanac/internal/access/certs/certstest"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

func serverPair(t *testing.T, ca *certstest.CA) tls.Certificate {
	t.Helper()
	c, k := ca.Issue(t, "nats", time.Now().Add(time.Hour))
	p, err := tls.X509KeyPair(c, k)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func selfSigned(t *testing.T, c *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// On all addresses a NATS takes those alone who come by TLS and with a password, and with a certificate where it asks for one. This
// machine's commands are shown a certificate of their own. A renewed one is shown to the next connection; those that are there stay.
func TestNATSBeyondLoopback(t *testing.T) {
	t.Parallel()
	ca, clients, dir := certstest.New(t, "ca"), certstest.New(t, "clients"), t.TempDir()
	cert, key := ca.Files(t, dir, "nats")
	shown, shownKey := clients.Files(t, dir, "client")
	others, othersKey := certstest.New(t, "clients").Files(t, dir, "other") // of a CA by the same name
	files, err := certs.Open(certs.Config{Cert: cert, Key: key, ClientCA: certstest.Write(t, filepath.Join(dir, "clients.crt"), clients.PEM), Require: true, Every: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(files.Close)
	s := embeddedtest.Start(t, embeddedtest.WithoutClickHouse(), embeddedtest.WithNATSConfig(func(c *embedded.NATSConfig) {
		c.Host, c.TLS, c.Passwords = "0.0.0.0", files.TLS(), passwords()
	}))
	u, err := url.Parse(s.NATS.ClientURL())
	if err != nil || u.Scheme != "tls" || u.Hostname() != "127.0.0.1" {
		t.Fatalf("this machine connects to %s: %v", s.NATS.ClientURL(), err)
	}
	if want := "tls://localhost:" + u.Port(); s.NATS.PublicURL() != want {
		t.Errorf("other machines connect to %s, want %s", s.NATS.PublicURL(), want)
	}
	local, err := certs.Pool([]byte(s.NATS.LocalCA()))
	if err != nil {
		t.Fatal(err)
	}
	operator := nats.UserInfo(access.UserOperator, "of "+access.UserOperator)
	trusted, certificate := nats.Secure(&tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12}), nats.ClientCert(shown, shownKey)
	own := nats.Secure(&tls.Config{RootCAs: local, ServerName: embedded.NATSLocalName, MinVersion: tls.VersionTLS12})
	for name, c := range map[string]struct {
		opts []nats.Option
		says string // empty: it is let in
	}{
		"password, certificate":          {[]nats.Option{trusted, certificate, operator}, ""},
		"no password":                    {[]nats.Option{trusted, certificate}, "Authorization Violation"},
		"the user of loopback":           {[]nats.Option{trusted, certificate, nats.UserInfo(access.UserLocal, "of "+access.UserLocal)}, "Authorization Violation"},
		"a wrong password":               {[]nats.Option{trusted, certificate, nats.UserInfo(access.UserOperator, "x")}, "Authorization Violation"},
		"no certificate":                 {[]nats.Option{trusted, operator}, "tls"}, // the server's alert, or a write that it cut off
		"another CA's certificate":       {[]nats.Option{trusted, nats.ClientCert(others, othersKey), operator}, "tls"},
		"the server's own certificate":   {[]nats.Option{trusted, nats.ClientCert(cert, key), operator}, "tls"},
		"a CA that is not known":         {[]nats.Option{nats.Secure(), certificate, operator}, "unknown authority"},
		"this machine":                   {[]nats.Option{own, operator}, ""},
		"this machine, without password": {[]nats.Option{own}, "Authorization Violation"},
		"this machine, another name":     {[]nats.Option{nats.Secure(&tls.Config{RootCAs: local, MinVersion: tls.VersionTLS12}), certificate, operator}, "unknown authority"},
		"in this process":                {[]nats.Option{nats.InProcessServer(s.NATS), operator}, ""},
	} {
		address := u.String()
		if name == "in this process" {
			address = s.NATS.InProcessURL()
		}
		nc, err := nats.Connect(address, append(c.opts, nats.Timeout(20*time.Second))...)
		switch {
		case err == nil && c.says != "":
			t.Errorf("%s: it was let in", name)
		case err != nil && (c.says == "" || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v", name, err)
		case err == nil:
			if err := nc.FlushTimeout(20 * time.Second); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			nc.Close()
		}
	}
	if plain, err := nats.Connect("nats://"+u.Host, operator); err == nil {
		state, err := plain.TLSConnectionState()
		t.Errorf("a client that knows no CA was let in: %v, %v", state, err)
	}

	there, err := nats.Connect(u.String(), trusted, certificate, operator, nats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	c, k := ca.Issue(t, "renewed", time.Now().Add(time.Hour))
	certstest.Write(t, cert, c)
	certstest.Write(t, key, k)
	embeddedtest.Eventually(t, time.Minute, func() error {
		nc, err := nats.Connect(u.String(), trusted, certificate, operator)
		if err != nil {
			return err
		}
		defer nc.Close()
		state, err := nc.TLSConnectionState()
		if err != nil {
			return err
		}
		if name := state.PeerCertificates[0].Subject.CommonName; name != "renewed" {
			return fmt.Errorf("it shows %s", name)
		}
		return nil
	})
	if err := errors.Join(there.FlushTimeout(20*time.Second), there.LastError()); err != nil {
		t.Errorf("a connection from before the certificate was renewed: %v", err)
	}
}
