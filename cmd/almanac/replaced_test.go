package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/certs/certstest"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// identity is by what an honest client knows an up, and is known.
type identity struct {
	roots  *x509.CertPool
	shows  tls.Certificate
	secret string
}

// ask sends one request over a connection of its own.
func (id *identity) ask(t *testing.T, method, at, body string) (*tls.ConnectionState, error) {
	t.Helper()
	client := &http.Client{Timeout: maxWait, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{
		RootCAs: id.roots, Certificates: []tls.Certificate{id.shows}, MinVersion: tls.VersionTLS12,
	}}}
	req, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+id.secret)
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return resp.TLS, err
}

// A client sends by connections of its own while the certificate, its CA, the CA of clients and the token are replaced, again and again, as
// docs/operations.md says: no request fails. A certificate that came without its key is said, and changes nothing until the key comes.
func TestReplacedWhileAClientSends(t *testing.T) {
	t.Parallel()
	rounds := 4
	if os.Getenv("ALMANAC_HOSTILE") == "all" {
		rounds = 20
	}
	b := newBox(t, "ALMANAC_LOOPBACK_TOKENS=true")
	ca, clients := certstest.New(t, "ca 0"), certstest.New(t, "clients 0")
	cert, key := ca.Files(t, b.dir, "server")
	clientCA := certstest.Write(t, filepath.Join(b.dir, "clients.crt"), clients.PEM)
	pair := func(ca *certstest.CA) tls.Certificate {
		c, k := ca.Issue(t, "client", time.Now().Add(time.Hour))
		p, err := tls.X509KeyPair(c, k)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	token := func() (string, access.Token) {
		secret, id := access.NewSecret()
		return secret, access.Token{Name: "web", ID: id, Digest: access.DigestOf(secret), Grants: []access.Grant{{Role: access.RoleWrite, Topics: []string{"app"}}, {Role: access.RoleRead, Topics: []string{"app"}}}}
	}
	secret, old := token()
	give := func(all ...access.Token) {
		text, err := access.Text(all)
		if err != nil {
			t.Fatal(err)
		}
		b.write("tokens.yaml", string(text))
	}
	give(old)
	b.env = append(b.env, "ALMANAC_TLS_CERT="+cert, "ALMANAC_TLS_KEY="+key, "ALMANAC_TLS_CLIENT_CA="+clientCA, "ALMANAC_TOKENS_FILE="+filepath.Join(b.dir, "tokens.yaml"))
	up := b.up()
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(a.HTTP); err != nil || u.Scheme != "https" {
		t.Fatal(a.HTTP)
	}
	read, send := a.HTTP+"/v1/topics/app/count", a.HTTP+"/v1/topics/app/events"

	var mu sync.Mutex
	now := identity{roots: ca.Pool(), shows: pair(clients), secret: secret}
	current := func() identity { mu.Lock(); defer mu.Unlock(); return now }
	var finished atomic.Int64 // requests
	done, sent := make(chan struct{}), make(chan int)
	// become returns once a request was answered that began with the identity: what the one before needs can go then.
	become := func(id identity) {
		mu.Lock()
		now = id
		after := finished.Load() + 2 // the one that is under way may have the identity of before
		mu.Unlock()
		embeddedtest.Eventually(t, maxWait, func() error {
			if n := finished.Load(); n < after {
				return fmt.Errorf("%d requests were answered, awaited are %d", n, after)
			}
			return nil
		})
	}
	go func() {
		n, tick := 0, time.NewTicker(25*time.Millisecond)
		defer tick.Stop()
		for ; ; n++ {
			select {
			case <-done:
				sent <- n
				return
			case <-tick.C:
			}
			id := current()
			if _, err := id.ask(t, http.MethodPost, send, fmt.Sprintf(`{"message":"%d"}`, n)); err != nil {
				t.Errorf("request %d: %v", n, err)
			}
			finished.Add(1)
		}
	}()
	for round := 1; round <= rounds; round++ {
		next, nextClients := certstest.New(t, fmt.Sprintf("ca %d", round)), certstest.New(t, fmt.Sprintf("clients %d", round))
		name := fmt.Sprintf("server %d", round)
		both := ca.Pool()
		both.AppendCertsFromPEM(next.PEM)
		id := current()
		id.roots = both
		become(id) // first clients trust both
		certstest.Write(t, clientCA, slices.Concat(clients.PEM, nextClients.PEM))
		c, k := next.Issue(t, name, time.Now().Add(time.Hour))
		certstest.Write(t, cert, c)
		if round == 2 {
			up.says("private key does not match")
			if state, err := id.ask(t, http.MethodGet, read, ""); err != nil || state.PeerCertificates[0].Subject.CommonName == name {
				t.Errorf("a certificate without its key: %v", err)
			}
		}
		certstest.Write(t, key, k)
		newSecret, newToken := token()
		give(old, newToken)
		id.shows, id.secret = pair(nextClients), newSecret
		embeddedtest.Eventually(t, maxWait, func() error {
			state, err := id.ask(t, http.MethodGet, read, "")
			if err != nil {
				return err
			}
			if got := state.PeerCertificates[0].Subject.CommonName; got != name {
				return fmt.Errorf("it shows %s", got)
			}
			return nil
		})
		id.roots = next.Pool()
		become(id)
		give(newToken)
		certstest.Write(t, clientCA, nextClients.PEM) // the next round may find the one of before in use
		ca, clients, old = next, nextClients, newToken
	}
	close(done)
	n := <-sent
	if count := strings.TrimSpace(b.ok("", "query", "app", "--count", "-o", "table")); count != fmt.Sprint(n) {
		t.Errorf("%d were sent, app has %s", n, count)
	}
	t.Logf("%d requests while all of it was replaced %d times", n, rounds)
}
