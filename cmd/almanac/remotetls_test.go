package main

import (
	"crypto/tls"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/almanac-events/almanac/internal/access/certs/certstest"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// behindTLS is a listener of TLS whose connections lead to an address.
func behindTLS(t *testing.T, c *tls.Config, to string) string {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = in.Close() }()
				out, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer func() { _ = out.Close() }()
				go func() { _, _ = io.Copy(out, in); _ = out.Close() }()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	return l.Addr().String()
}

// An up and its verbs work on a NATS and a ClickHouse of TLS, whose CA is a file and to which a certificate is shown. Without them the error
// says what is not trusted.
func TestServersOverTLS(t *testing.T) {
	t.Parallel()
	ca, dir := certstest.New(t, "ca"), t.TempDir()
	cert, key := ca.Files(t, dir, "server")
	caFile := certstest.Write(t, filepath.Join(dir, "ca.crt"), ca.PEM)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	secure := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	shown := secure.Clone()
	shown.ClientCAs, shown.ClientAuth = ca.Pool(), tls.RequireAndVerifyClientCert
	n, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, JetStreamMaxStore: 1 << 40, StoreDir: filepath.Join(dir, "nats"), TLS: true, TLSConfig: shown, TLSVerify: true, TLSTimeout: 60, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	n.Start()
	t.Cleanup(func() { n.Shutdown(); n.WaitForShutdown() })
	if !n.ReadyForConnections(maxWait) {
		t.Fatal("NATS does not start")
	}
	engine, err := url.Parse(embeddedtest.Start(t, embeddedtest.WithoutNATS()).HTTPDSN())
	if err != nil {
		t.Fatal(err)
	}
	engine.Scheme, engine.Host = "https", behindTLS(t, secure, engine.Host)
	b := newBox(t, "ALMANAC_NATS=tls://"+n.Addr().String(), "ALMANAC_CLICKHOUSE="+engine.String())
	for name, with := range map[string][]string{
		"no CA":          nil,
		"no certificate": {"--nats-ca", caFile},
		"no key":         {"--nats-ca", caFile, "--nats-cert", cert},
	} {
		if r := b.run("", append([]string{"topics", "ls"}, with...)...); r.code == exitOK || !strings.Contains(r.err, "tls://127.0.0.1") {
			t.Errorf("%s: exit %d: %s", name, r.code, r.err)
		}
	}
	b.env = append(b.env, "ALMANAC_NATS_CA="+caFile, "ALMANAC_NATS_CERT="+cert, "ALMANAC_NATS_KEY="+key)
	without := len(b.env)
	b.env = append(b.env, "ALMANAC_CLICKHOUSE_CA="+caFile)
	b.up()
	b.ok("hello\n", "send", "app")
	contains(t, b.ok("", "query", "app", "-o", "ndjson"), "hello")
	contains(t, b.ok("", "sql", "SELECT 40+2"), "42")
	b.env = b.env[:without]
	if r := b.run("", "sql", "SELECT 1"); r.code == exitOK || !strings.Contains(r.err, "unknown authority") {
		t.Errorf("a ClickHouse of a CA that is not known: exit %d: %s", r.code, r.err)
	}
}
