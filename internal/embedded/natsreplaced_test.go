package embedded_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/certs"
	"github.com/almanac-events/almanac/internal/access/certs/certstest"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// natsIdentity is by what a client knows a NATS, and is known.
type natsIdentity struct {
	roots *x509.CertPool
	shows tls.Certificate
	n     int64
}

// Clients send without one failure, by a connection of their own each time and by one that stays, while certificate, key, CA and the CA of
// clients are replaced again and again: first those who look trust both, then what is shown is replaced, then the old one goes.
func TestNATSWhileItsCertificatesAreReplaced(t *testing.T) {
	t.Parallel()
	const rounds = 20
	ca, clients, dir := certstest.New(t, "ca 0"), certstest.New(t, "clients 0"), t.TempDir()
	cert, key := ca.Files(t, dir, "nats 0")
	clientCA := certstest.Write(t, filepath.Join(dir, "clients.crt"), clients.PEM)
	files, err := certs.Open(certs.Config{Cert: cert, Key: key, ClientCA: clientCA, Require: true, Every: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(files.Close)
	s := embeddedtest.Start(t, embeddedtest.WithoutClickHouse(), embeddedtest.WithNATSConfig(func(c *embedded.NATSConfig) {
		c.Host, c.TLS, c.Passwords = "0.0.0.0", files.TLS(), passwords()
	}))
	connect := func(id *natsIdentity) (*nats.Conn, error) {
		return nats.Connect(s.NATS.ClientURL(), nats.UserInfo(access.UserOperator, "of "+access.UserOperator), nats.Timeout(time.Minute), nats.NoReconnect(),
			nats.Secure(&tls.Config{RootCAs: id.roots, Certificates: []tls.Certificate{id.shows}, MinVersion: tls.VersionTLS12}))
	}
	send := func(nc *nats.Conn) error {
		return errors.Join(nc.Publish("told", []byte("x")), nc.FlushTimeout(time.Minute), nc.LastError())
	}
	pair := func(ca *certstest.CA) tls.Certificate {
		c, k := ca.Issue(t, "client", time.Now().Add(time.Hour))
		p, err := tls.X509KeyPair(c, k)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var now atomic.Pointer[natsIdentity]
	now.Store(&natsIdentity{roots: ca.Pool(), shows: pair(clients)})
	stays, err := connect(now.Load())
	if err != nil {
		t.Fatal(err)
	}
	defer stays.Close()

	ctx, cancel := context.WithCancel(t.Context())
	var sent, used atomic.Int64
	failed := make(chan error, 1)
	var sending sync.WaitGroup
	defer sending.Wait()
	defer cancel()
	sending.Go(func() {
		for ctx.Err() == nil {
			id := now.Load()
			nc, err := connect(id)
			if err == nil {
				err = send(nc)
				nc.Close()
			}
			if err = errors.Join(err, send(stays)); err != nil {
				failed <- fmt.Errorf("send %d, identity %d: %w", sent.Load(), id.n, err)
				return
			}
			sent.Add(1)
			used.Store(id.n)
		}
	})
	holds := func(what string, is func() bool) {
		t.Helper()
		embeddedtest.Eventually(t, 2*time.Minute, func() error {
			select {
			case err := <-failed:
				t.Fatal(err)
			default:
			}
			if !is() {
				return fmt.Errorf("%s after %d sends", what, sent.Load())
			}
			return nil
		})
	}
	// become has the client use another identity, and returns when it does not use the one before.
	become := func(change func(*natsIdentity)) {
		t.Helper()
		id := *now.Load()
		id.n++
		change(&id)
		now.Store(&id)
		holds("the client does not use what it was given", func() bool { return used.Load() == id.n })
	}
	serves := func(what string, is func(*tls.Config) bool) {
		t.Helper()
		holds(what+" is not taken", func() bool {
			c, err := files.TLS().GetConfigForClient(nil)
			return err == nil && is(c)
		})
	}
	for round := 1; round <= rounds; round++ {
		next, nextClients := certstest.New(t, fmt.Sprintf("ca %d", round)), certstest.New(t, fmt.Sprintf("clients %d", round))
		both, err := certs.Pool(slices.Concat(ca.PEM, next.PEM))
		if err != nil {
			t.Fatal(err)
		}
		become(func(id *natsIdentity) { id.roots = both })
		certstest.Write(t, clientCA, slices.Concat(clients.PEM, nextClients.PEM))
		name := fmt.Sprintf("nats %d", round)
		c, k := next.Issue(t, name, time.Now().Add(time.Hour))
		certstest.Write(t, cert, c)
		certstest.Write(t, key, k)
		serves("the certificate, with both CAs of clients", func(c *tls.Config) bool {
			pool, err := certs.Pool(slices.Concat(clients.PEM, nextClients.PEM))
			return err == nil && c.ClientCAs.Equal(pool) && c.Certificates[0].Leaf.Subject.CommonName == name
		})
		become(func(id *natsIdentity) { id.roots, id.shows = next.Pool(), pair(nextClients) })
		certstest.Write(t, clientCA, nextClients.PEM)
		serves("the CA of clients alone", func(c *tls.Config) bool { return c.ClientCAs.Equal(nextClients.Pool()) })
		ca, clients = next, nextClients
	}
	become(func(*natsIdentity) {}) // once more with what is left
	// Another CA is refused at both ends, by whatever name.
	other := certstest.New(t, "clients 0")
	if nc, err := connect(&natsIdentity{roots: ca.Pool(), shows: pair(other)}); err == nil {
		nc.Close()
		t.Error("a certificate of another CA is taken")
	}
	if nc, err := connect(&natsIdentity{roots: other.Pool(), shows: pair(clients)}); err == nil {
		nc.Close()
		t.Error("the server shows a certificate of another CA")
	}
	t.Logf("%d sends while all of it was replaced %d times", sent.Load(), rounds)
}
