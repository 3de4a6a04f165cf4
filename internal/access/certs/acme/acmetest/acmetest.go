package acmetest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
)

// Authority is Let's Encrypt's Pebble in this process. To it all names are those of 127.0.0.1.
type Authority struct {
	// Directory is its URL, and DirectoryPEM the CA of that.
	Directory    string
	DirectoryPEM []byte
	// Roots signed what it issues.
	Roots *x509.CertPool
	// ProvesAt is the address of this machine that it connects to in place of port 443; it is free.
	ProvesAt string
	// Asked counts the requests to it.
	Asked atomic.Int64
}

// Ports that are free until a server listens: below those that the kernel gives to connections and to listeners of port 0, and below those of
// package embeddedtest.
const (
	firstPort = 10_000
	lastPort  = 14_999
	portTries = 100
)

// listen listens on one of them.
func listen(t *testing.T) (net.Listener, int) {
	t.Helper()
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // a port, no secret
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return l, port
		}
	}
	t.Fatal("no port is free")
	return nil, 0
}

// Start starts one. The test cannot run beside others.
func Start(t *testing.T) *Authority {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", "0")
	free, port := listen(t)
	other, namesPort := listen(t) // while the first one listens: it is another one
	_, _ = free.Close(), other.Close()
	names := fmt.Sprintf("127.0.0.1:%d", namesPort)
	quiet := log.New(io.Discard, "", 0)
	dns, err := challtestsrv.New(challtestsrv.Config{DNSAddrs: []string{names}, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	dns.SetDefaultDNSIPv4("127.0.0.1")
	dns.SetDefaultDNSIPv6("")
	go dns.Run()
	t.Cleanup(dns.Shutdown)

	store := db.NewMemoryStore()
	issues := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "of a test", ValidityPeriod: 90 * 24 * 3600}})
	proves := va.New(quiet, port, port, true, names, store)
	front := wfe.New(quiet, store, proves, issues, nil, true, false, 1, 1)
	a := &Authority{Roots: x509.NewCertPool(), ProvesAt: fmt.Sprintf("127.0.0.1:%d", port)}
	handler := front.Handler()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.Asked.Add(1)
		handler.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	a.Directory = server.URL + "/dir"
	a.DirectoryPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	a.Roots.AppendCertsFromPEM(issues.GetRootCert(0).PEM())
	return a
}

// Trust is the TLS of a client that asks for a host and trusts what the authority issues.
func (a *Authority) Trust(host string) *tls.Config {
	return &tls.Config{RootCAs: a.Roots, ServerName: host, MinVersion: tls.VersionTLS12}
}
