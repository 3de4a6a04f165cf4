package embedded_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/access/certs/certstest"
	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

const soon = 2 * time.Minute

// publish stores n messages in the stream S, created when missing, and gives the last sequence.
func publish(t *testing.T, nc *nats.Conn, n int) uint64 {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	cfg := jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}, Duplicates: 10 * time.Minute, AllowAtomicPublish: true}
	if _, err := js.CreateOrUpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	var last uint64
	for range n {
		ack, err := js.Publish(t.Context(), "s", []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		last = ack.Sequence
	}
	return last
}

func TestNATSServesBothListeners(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t, embeddedtest.WithoutClickHouse(), embeddedtest.WithSync())
	if got := publish(t, s.NC(), 3); got != 3 {
		t.Errorf("last sequence over TCP = %d, want 3", got)
	}
	nc, err := nats.Connect("", nats.InProcessServer(s.NATS))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if got := publish(t, nc, 1); got != 4 {
		t.Errorf("last sequence in process = %d, want 4", got)
	}
	if err := s.NATS.Healthy(); err != nil {
		t.Error(err)
	}
	if nc.MaxPayload() != 1<<20 {
		t.Errorf("largest message = %d, want 1 MiB", nc.MaxPayload())
	}
	if s.NATS.StoreLimit() <= 0 {
		t.Error("no limit for the streams")
	}
}

func TestNATSKeepsStreamsOverStop(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "nats")
	for round := range uint64(2) {
		n, err := embedded.NewNATS(embedded.NATSConfig{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		stop := embeddedtest.Run(t, n)
		nc, err := nats.Connect(n.ClientURL(), nats.Timeout(20*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := publish(t, nc, 5), (round+1)*5; got != want {
			t.Errorf("round %d: last sequence = %d, want %d", round, got, want)
		}
		nc.Close()
		stop()
		if err := n.Healthy(); !errors.Is(err, embedded.ErrNotRunning) {
			t.Errorf("Healthy after the stop = %v, want ErrNotRunning", err)
		}
		if err := n.Run(t.Context()); !errors.Is(err, embedded.ErrUsedTwice) {
			t.Errorf("second Run = %v, want ErrUsedTwice", err)
		}
	}
}

// JetStream off, for whatever reason, comes back by itself; clients notice a reconnect and nothing else.
func TestNATSComesBack(t *testing.T) {
	t.Parallel()
	s := embeddedtest.Start(t, embeddedtest.WithoutClickHouse(), embeddedtest.WithNATSConfig(func(c *embedded.NATSConfig) {
		c.CheckInterval = 20 * time.Millisecond
	}))
	inside, err := nats.Connect("", nats.InProcessServer(s.NATS), nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	url := s.NATSURL
	publish(t, s.NC(), 3)
	if err := s.NATS.SwitchOffJetStream(); err != nil {
		t.Fatal(err)
	}
	for name, nc := range map[string]*nats.Conn{"TCP": s.NC(), "in process": inside} {
		js, err := jetstream.New(nc)
		if err != nil {
			t.Fatal(err)
		}
		embeddedtest.Eventually(t, soon, func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := js.Publish(ctx, "s", nil)
			if err != nil {
				return errors.New(name + ": " + err.Error())
			}
			return nil
		})
	}
	if s.NATS.ClientURL() != url {
		t.Errorf("moved from %s to %s", url, s.NATS.ClientURL())
	}
	if err := s.NATS.Healthy(); err != nil {
		t.Error(err)
	}
}

func TestNATSPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	n, err := embedded.NewNATS(embedded.NATSConfig{Dir: t.TempDir(), Port: l.Addr().(*net.TCPAddr).Port})
	if err != nil {
		t.Fatal(err)
	}
	err = n.Run(t.Context())
	if !errors.Is(err, embedded.ErrPortInUse) {
		t.Fatalf("Run = %v, want ErrPortInUse", err)
	}
	for _, want := range []string{"127.0.0.1", port, "--ports auto"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if waited := n.WaitReady(t.Context()); waited == nil || waited.Error() != err.Error() {
		t.Errorf("WaitReady = %v, want the same error", waited)
	}
}

// The store's own last words reach the caller: here a directory that is a file.
func TestNATSBadStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeText(t, filepath.Join(dir, "jetstream"), "not a directory")
	n, err := embedded.NewNATS(embedded.NATSConfig{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	err = n.Run(t.Context())
	if !errors.Is(err, embedded.ErrStart) || !strings.Contains(err.Error(), dir) {
		t.Errorf("Run = %v, want ErrStart naming %s", err, dir)
	}
}

func TestNATSConfigIsChecked(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]embedded.NATSConfig{
		"no directory":  {},
		"port":          {Dir: "x", Port: 70000},
		"negative":      {Dir: "x", MaxStoreBytes: -1},
		"all addresses": {Dir: "x", Host: "0.0.0.0"},
	} {
		if _, err := embedded.NewNATS(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	secure := &tls.Config{Certificates: []tls.Certificate{serverPair(t, certstest.New(t, "ca"))}}
	for name, cfg := range map[string]embedded.NATSConfig{
		"no TLS":      {Host: "10.0.0.1", Passwords: passwords()},
		"no users":    {Host: "10.0.0.1", TLS: secure},
		"local alone": {Host: "10.0.0.1", TLS: secure, Passwords: map[string]string{access.UserLocal: "x"}},
		"a name":      {Host: "localhost.example", Passwords: passwords()},
	} {
		cfg.Dir = "x"
		if _, err := embedded.NewNATS(cfg); !errors.Is(err, embedded.ErrNotLoopback) {
			t.Errorf("%s on an address of the network gave %v, want ErrNotLoopback", name, err)
		}
	}
	nameless := &tls.Config{Certificates: []tls.Certificate{selfSigned(t, &x509.Certificate{SerialNumber: big.NewInt(1)})}}
	if _, err := embedded.NewNATS(embedded.NATSConfig{Dir: "x", Host: "10.0.0.1", TLS: nameless, Passwords: passwords()}); err == nil || !strings.Contains(err.Error(), "names no host") {
		t.Errorf("a certificate without a name gave %v", err)
	}
}
