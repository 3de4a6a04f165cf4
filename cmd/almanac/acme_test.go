package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/almanac-events/almanac/internal/access/certs/acme/acmetest"
	"github.com/almanac-events/almanac/internal/access/certs/certstest"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// A process has the certificate of its listeners issued by an authority that its settings name, and keeps it in its data directory.
func TestCertificateIsIssued(t *testing.T) {
	const host = "logs.almanac.test"
	a := acmetest.Start(t)
	b := newBox(t)
	ca := certstest.Write(t, filepath.Join(b.dir, "directory.crt"), a.DirectoryPEM)
	b.write("almanac.yaml", fmt.Sprintf("acme_hosts: %s\nacme_directory: %s\nacme_ca: %s\n", host, a.Directory, ca))
	d := b.background("gateway", "--http", a.ProvesAt, "--otlp-http", "off", "--otlp-grpc", "off", "--nats", "nats://127.0.0.1:1", "--clickhouse", "http://127.0.0.1:1/almanac")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: a.Trust(host)}}
	embeddedtest.Eventually(t, 3*maxWait, func() error {
		select {
		case <-d.done:
			t.Fatal(d.stderr())
		default:
		}
		resp, err := client.Get("https://" + a.ProvesAt + "/healthz")
		if err != nil {
			return fmt.Errorf("%w: %s", err, d.stderr())
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s", resp.Status)
		}
		return nil
	})
	kept := filepath.Join(b.data(), embedded.ACMEName)
	if info, err := os.Stat(kept); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v, %v", kept, info, err)
	}
}

// What would leave a listener without a certificate is an error of the settings.
func TestIssuedOrRead(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for name, flags := range map[string][]string{
		"both":          {"--tls-cert", "x", "--tls-key", "y", "--acme-hosts", "logs.example.com"},
		"not a host":    {"--acme-hosts", "localhost"},
		"not https":     {"--acme-hosts", "logs.example.com", "--acme-directory", "http://ca.example"},
		"no such CA":    {"--acme-hosts", "logs.example.com", "--acme-ca", "none"},
		"an empty name": {"--acme-hosts", "logs.example.com,,"},
	} {
		args := append([]string{"gateway", "--nats", "nats://127.0.0.1:1", "--clickhouse", "http://127.0.0.1:1", "--ports", "auto"}, flags...)
		if r := b.run("", args...); r.code != exitConfig && r.code != exitUsage {
			t.Errorf("%s: exit %d: %s", name, r.code, r.err)
		} else {
			contains(t, r.err, "acme")
		}
	}
}
