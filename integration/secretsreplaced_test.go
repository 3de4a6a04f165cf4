package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/certs"
	"github.com/almanac-events/almanac/internal/access/certs/certstest"
	"github.com/almanac-events/almanac/internal/access/keep"
	"github.com/almanac-events/almanac/internal/gateway"
)

// credential is what a client has at a time.
type credential struct {
	secret string
	trusts *x509.CertPool
	shows  tls.Certificate
	n      int
}

// senders send one request after the other, each over a connection of its own, with what they have at the time.
type senders struct {
	has    atomic.Pointer[credential]
	failed atomic.Pointer[string]
	sent   [6]atomic.Int64 // requests of each
	used   [6]atomic.Int64 // the number of the credential that each used last
}

func (s *senders) run(ctx context.Context, i int, send func(context.Context, *credential) error) {
	for ctx.Err() == nil && s.failed.Load() == nil {
		c := s.has.Load()
		if err := send(ctx, c); err != nil && ctx.Err() == nil {
			text := fmt.Sprintf("sender %d, credential %d: %v", i, c.n, err)
			s.failed.CompareAndSwap(nil, &text)
			return
		}
		s.sent[i].Add(1)
		s.used[i].Store(int64(c.n))
	}
}

// give has the senders use another credential, and returns when none uses the one before.
func (s *senders) give(t *testing.T, change func(c *credential)) {
	t.Helper()
	c := *s.has.Load()
	c.n++
	change(&c)
	s.has.Store(&c)
	eventually(t, time.Minute, func() error {
		if text := s.failed.Load(); text != nil {
			t.Fatal(*text)
		}
		for i := range s.used {
			if at := s.used[i].Load(); at < int64(c.n) {
				return fmt.Errorf("sender %d still uses credential %d", i, at)
			}
		}
		return nil
	})
}

func logsOf(text string) plogotlp.ExportRequest {
	logs := plog.NewLogs()
	logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr(text)
	return plogotlp.NewExportRequestFromLogs(logs)
}

// Clients that send by a token and by a certificate, over HTTP, gRPC, OTLP/HTTP and Elastic's protocol, go on without one failed request while certificate, CA
// and token of a gateway are replaced twenty times, each in the order that the documents say.
func TestNothingFailsWhileSecretsAreReplaced(t *testing.T) {
	t.Parallel()
	const every = 20 * time.Millisecond
	e := start(t, newTopic("app"))
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	newToken := func() (string, access.Token) {
		secret, id := access.NewSecret()
		return secret, access.Token{Name: "api", ID: id, Digest: access.DigestOf(secret), Grants: []access.Grant{{Role: access.RoleWrite, Topics: []string{"app"}}}}
	}
	shipper := access.Token{Name: "shipper", Subject: "CN=shipper", Grants: []access.Grant{{Role: access.RoleWrite, Topics: []string{"app"}}}}
	ca := certstest.New(t, "ca 0")
	pair := func(ca *certstest.CA) tls.Certificate {
		c, k := ca.Issue(t, "shipper", time.Now().Add(time.Hour))
		p, err := tls.X509KeyPair(c, k)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	cert, key := ca.Files(t, dir, "server")
	certstest.Write(t, path("ca.crt"), ca.PEM)
	secret, token := newToken()
	if err := keep.WriteFile(path("tokens.yaml"), []access.Token{shipper, token}); err != nil {
		t.Fatal(err)
	}
	k, err := keep.Open(keep.Config{File: path("tokens.yaml"), Every: every, OnError: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	files, err := certs.Open(certs.Config{Cert: cert, Key: key, ClientCA: path("ca.crt"), Every: every})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(files.Close)
	var listeners [3]net.Listener
	for i := range listeners {
		if listeners[i], err = (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	l, otlp, elastic := listeners[0], listeners[1], listeners[2]
	base, _ := e.gateway(func(c *gateway.Config) {
		c.Tokens, c.TLS, c.OTLPGRPC, c.OTLPHTTP, c.Elastic, c.Topic, c.MetricsTopic = k, files.TLS(), l, otlp, elastic, "app", "app"
	})
	lines := strings.Replace(base, "http://", "https://", 1) + "/v1/topics/app/events"
	bulk, logs := "https://"+elastic.Addr().String()+"/app/_bulk", "https://"+otlp.Addr().String()+"/v1/logs"

	var s senders
	s.has.Store(&credential{secret: secret, trusts: ca.Pool(), shows: pair(ca)})
	// Without a secret the request says that it came by a proxy: on loopback anyone may send, and then the certificate decides.
	post := func(ctx context.Context, url, kind, body, secret string, config *tls.Config) error {
		transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", kind)
		if secret != "" {
			req.Header.Set("Authorization", "Bearer "+secret)
		} else {
			req.Header.Set("X-Forwarded-For", "192.0.2.7")
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK || resp.TLS == nil || bytes.Contains(text, []byte(`"errors":true`)) {
			return fmt.Errorf("%s %s, %w", resp.Status, text, err)
		}
		return nil
	}
	line := func(ctx context.Context, secret string, config *tls.Config) error {
		return post(ctx, lines, "application/x-ndjson", `{"message":"x"}`, secret, config)
	}
	export := func(ctx context.Context, config *tls.Config, says ...string) error {
		nc, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if err != nil {
			return err
		}
		defer func() { _ = nc.Close() }()
		_, err = plogotlp.NewGRPCClient(nc).Export(metadata.AppendToOutgoingContext(ctx, says...), logsOf("x"))
		return err
	}
	trusting := func(c *credential) *tls.Config { return &tls.Config{RootCAs: c.trusts, MinVersion: tls.VersionTLS12} }
	showing := func(c *credential) *tls.Config {
		return &tls.Config{RootCAs: c.trusts, Certificates: []tls.Certificate{c.shows}, MinVersion: tls.VersionTLS12}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i, send := range []func(context.Context, *credential) error{
		func(ctx context.Context, c *credential) error { return line(ctx, c.secret, trusting(c)) },
		func(ctx context.Context, c *credential) error { return line(ctx, "", showing(c)) },
		func(ctx context.Context, c *credential) error {
			return export(ctx, trusting(c), "authorization", "Bearer "+c.secret)
		},
		func(ctx context.Context, c *credential) error {
			return export(ctx, showing(c), "x-forwarded-for", "192.0.2.7")
		},
		func(ctx context.Context, c *credential) error {
			return post(ctx, logs, "application/json", otlpLogs, c.secret, trusting(c))
		},
		func(ctx context.Context, c *credential) error {
			return post(ctx, bulk, "application/x-ndjson", "{\"create\":{}}\n{\"message\":\"x\"}\n", "", showing(c))
		},
	} {
		all.Go(func() { s.run(ctx, i, send) })
	}
	t.Cleanup(all.Wait)
	t.Cleanup(cancel)

	served := func(what string, is func(*tls.Config) bool) {
		t.Helper()
		eventually(t, time.Minute, func() error {
			if c, err := files.TLS().GetConfigForClient(nil); err != nil || !is(c) {
				return fmt.Errorf("%s is not taken: %w", what, err)
			}
			return nil
		})
	}
	known := func(n int) {
		t.Helper()
		eventually(t, time.Minute, func() error {
			if got := k.Tokens().Len(); got != n {
				return fmt.Errorf("%d tokens are known, not %d", got, n)
			}
			return nil
		})
	}
	for i := range 20 {
		// The next CA: first both, then the certificates of both ends, then the new one alone.
		next := certstest.New(t, fmt.Sprintf("ca %d", i+1))
		both := append(bytes.Clone(ca.PEM), next.PEM...)
		pool, err := certs.Pool(both)
		if err != nil {
			t.Fatal(err)
		}
		certstest.Write(t, path("ca.crt"), both)
		served("the CA beside the old one", func(c *tls.Config) bool { return c.ClientCAs.Equal(pool) })
		s.give(t, func(c *credential) { c.trusts = pool })
		name := fmt.Sprintf("server %d", i+1)
		newCert, newKey := next.Issue(t, name, time.Now().Add(time.Hour))
		certstest.Write(t, cert, newCert)
		certstest.Write(t, key, newKey)
		served("the certificate", func(c *tls.Config) bool { return c.Certificates[0].Leaf.Subject.CommonName == name })
		s.give(t, func(c *credential) { c.shows, c.trusts = pair(next), next.Pool() })
		certstest.Write(t, path("ca.crt"), next.PEM)
		served("the CA alone", func(c *tls.Config) bool { return c.ClientCAs.Equal(next.Pool()) })
		ca = next
		// The next secret of the token: first both, then the new one alone.
		newSecret, newOne := newToken()
		for _, tokens := range [][]access.Token{{shipper, token, newOne}, {shipper, newOne}} {
			if err := keep.WriteFile(path("tokens.yaml"), tokens); err != nil {
				t.Fatal(err)
			}
			known(len(tokens))
			s.give(t, func(c *credential) { c.secret = newSecret })
		}
		token = newOne
	}
	cancel()
	all.Wait()
	if text := s.failed.Load(); text != nil {
		t.Fatal(*text)
	}
	for i := range s.sent {
		if n := s.sent[i].Load(); n < 80 {
			t.Errorf("sender %d sent %d requests", i, n)
		}
	}
	// What was replaced is refused: the first token, and the first CA's certificate.
	old := s.has.Load()
	if err := line(t.Context(), secret, trusting(old)); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("the first token: %v", err)
	}
	first := pair(certstest.New(t, "ca 0"))
	foreign := &tls.Config{RootCAs: old.trusts, MinVersion: tls.VersionTLS12, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &first, nil }}
	if err := line(t.Context(), "", foreign); err == nil {
		t.Error("a certificate of another CA is taken")
	}
	brief, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	if err := export(brief, foreign, "x-forwarded-for", "192.0.2.7"); err == nil {
		t.Error("a certificate of another CA is taken over gRPC")
	}
	other, otherKey := ca.Issue(t, "other", time.Now().Add(time.Hour))
	stranger, err := tls.X509KeyPair(other, otherKey)
	if err != nil {
		t.Fatal(err)
	}
	strange := &tls.Config{RootCAs: old.trusts, MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{stranger}}
	if err := line(t.Context(), "", strange); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a certificate that no token has: %v", err)
	}
	if err := export(t.Context(), strange, "x-forwarded-for", "192.0.2.7"); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a certificate that no token has, over gRPC: %v", err)
	}
	// On loopback anyone may send; what changes needs a token.
	if err := export(t.Context(), strange); err != nil {
		t.Errorf("a certificate that no token has, on loopback: %v", err)
	}
}

// A token that has used its rate is refused over HTTP and gRPC, on every topic, with how long to wait; another one is not.
func TestRateOfAToken(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"), newTopic("other"))
	var tokens []access.Token
	var secrets []string
	for _, name := range []string{"wild", "calm"} {
		secret, id := access.NewSecret()
		secrets = append(secrets, secret)
		tokens = append(tokens, access.Token{
			Name: name, ID: id, Digest: access.DigestOf(secret), Rate: access.Rate{Events: 0.01},
			Grants: []access.Grant{{Role: access.RoleWrite, Topics: []string{access.Every}}},
		})
	}
	text, err := access.Text(tokens)
	if err != nil {
		t.Fatal(err)
	}
	k, err := keep.Open(keep.Config{Text: string(text)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base, _ := e.gateway(func(c *gateway.Config) { c.Tokens, c.OTLPGRPC, c.Topic, c.MetricsTopic = k, l, "app", "app" })
	nc, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	const kind = "application/x-ndjson"
	send := func(topic, secret string) (int, string) {
		return e.sendAs(http.MethodPost, base+"/v1/topics/"+topic+"/events", secret, kind, `{"message":"x"}`)
	}
	export := func(secret string) error {
		_, err := plogotlp.NewGRPCClient(nc).Export(metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+secret), logsOf("x"))
		return err
	}
	if code, text := send("app", secrets[0]); code != http.StatusOK {
		t.Fatalf("the first request: %d %s", code, text)
	}
	for _, topic := range []string{"app", "other"} {
		if code, text := send(topic, secrets[0]); code != http.StatusTooManyRequests || !strings.Contains(text, `"rate"`) {
			t.Errorf("%s: %d %s", topic, code, text)
		}
	}
	if s := status.Convert(export(secrets[0])); s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 {
		t.Errorf("gRPC: %v, %v", s, s.Details())
	}
	if code, text := e.sendAs(http.MethodPost, base+"/elastic/app/_bulk", secrets[0], kind, "{\"create\":{}}\n{\"message\":\"x\"}\n"); !strings.Contains(text, `"status":429`) { // each item has its own
		t.Errorf("bulk: %d %s", code, text)
	}
	if err := export(secrets[1]); err != nil {
		t.Errorf("another token: %v", err)
	}
	if code, text := send("app", ""); code != http.StatusOK {
		t.Errorf("no token, on loopback: %d %s", code, text)
	}
}
