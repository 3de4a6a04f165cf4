package main

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/certs/certstest"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// The NATS of an up that others reach takes no client without TLS and a password. The verbs beside it work as on loopback, whatever its certificate is,
// and a producer elsewhere sends by the address that config nats prints. A renewed certificate is shown while all of it runs.
func TestNATSOfAnUpBeyondLoopback(t *testing.T) {
	t.Parallel()
	ca := certstest.New(t, "ca")
	b := newBox(t)
	cert, key := ca.Files(t, b.dir, "server")
	caFile := certstest.Write(t, filepath.Join(b.dir, "ca.crt"), ca.PEM)
	b.write("almanac.yaml", fmt.Sprintf("nats: 0.0.0.0:%d\ntls_cert: %s\ntls_key: %s\n", embeddedtest.FreePort(t), cert, key))
	b.hostile = true
	s := b.up()
	b.ok("1\n", "send", "app")
	b.inTheEnd(1)
	b.ok("", "verify")
	b.examined()

	login := strings.TrimSpace(b.ok("", "config", "nats", "--print-url", "--user", access.UserProducer))
	u, err := url.Parse(login)
	if err != nil || u.Scheme != "tls" || u.Hostname() != "localhost" || u.User.Username() != access.UserProducer {
		t.Fatalf("config nats prints %s", login)
	}
	elsewhere := newBox(t, "ALMANAC_NATS="+login, "ALMANAC_NATS_CA="+caFile)
	elsewhere.ok("2\n", "send", "app")
	b.inTheEnd(2)
	if r := elsewhere.run("", "topics", "rm", "app", "--yes"); r.code == exitOK {
		t.Errorf("a producer removed a topic: %s%s", r.out, r.err)
	}
	checkModes(t, b.data())

	anonymous := *u
	anonymous.User = nil
	roots := nats.Secure(&tls.Config{RootCAs: ca.Pool(), MinVersion: tls.VersionTLS12})
	for _, user := range []nats.Option{nats.Name("anonymous"), nats.UserInfo(access.UserLocal, ""), nats.Token("x")} {
		if nc, err := nats.Connect(anonymous.String(), nats.Timeout(maxWait), roots, user); err == nil {
			nc.Close()
			t.Error("a client without a password was let in")
		}
	}
	c, k := ca.Issue(t, "renewed", time.Now().Add(time.Hour))
	certstest.Write(t, cert, c)
	certstest.Write(t, key, k)
	embeddedtest.Eventually(t, maxWait, func() error {
		nc, err := nats.Connect(login, nats.Timeout(maxWait), roots)
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
	b.ok("3\n", "send", "app")
	b.inTheEnd(3)
	if code := s.stop(syscall.SIGTERM); code != exitOK {
		t.Errorf("it ended with %d: %s", code, s.stderr())
	}
}

// What would open NATS without TLS, or would do nothing, ends an up before anything is stored, with what to write.
func TestNATSDoesNotOpenByMistake(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for flags, says := range map[string]string{
		"--nats 0.0.0.0:0":                                   "NATS has no TLS",
		"--nats [::]:0 --insecure plaintext,no-auth":         "tls_cert: ",
		"--nats 127.0.0.1:0 --nats-client-ca x":              "nats: 0.0.0.0",
		"--nats 0.0.0.0:0 --tls-cert none --tls-key none":    "cannot stat none",
		"--nats 0.0.0.0:0 --nats-client-ca x --tls-cert x.y": "tls_cert and tls_key",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			got := b.run("", append(strings.Fields("up --ports auto --data "+t.TempDir()), strings.Fields(flags)...)...)
			if got.code != exitConfig || !strings.Contains(got.err, says) {
				t.Errorf("exit %d: %s", got.code, got.err)
			}
		})
	}
}
