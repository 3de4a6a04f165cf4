package embeddedtest

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded"
)

// Twin is another engine, with the accounts of the first one and nothing else of it: what a
// second server behind one address is. It ends with the test.
func (s *Servers) Twin() *embedded.ClickHouse {
	s.t.Helper()
	engine, stop, err := start(s.Engine, nil)
	missing(s.t, err)
	s.t.Cleanup(stop)
	return engine
}

// giveAccounts writes the accounts of one engine into the directory of another, where it finds
// them at its start.
func giveAccounts(of *embedded.ClickHouse, dir string) error {
	data, err := json.Marshal(passwordsOf(of))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "passwords.json"), data, 0o600)
}

func passwordsOf(of *embedded.ClickHouse) map[string]string {
	all := map[string]string{of.User(): of.Password()}
	for _, u := range access.ClickHouseUsers() {
		_, all[u.Name] = of.Account(u.Name)
	}
	return all
}

// Balancer is a TCP balancer that gives each connection to the next of some servers.
type Balancer struct {
	listener net.Listener

	mu    sync.Mutex
	hosts []string
	next  int
	open  map[net.Conn]struct{}
}

// Balance listens in front of servers (host:port) until the test ends.
func Balance(t testing.TB, hosts ...string) *Balancer {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &Balancer{listener: l, hosts: hosts, open: map[net.Conn]struct{}{}}
	t.Cleanup(func() {
		_ = l.Close()
		b.Only()
	})
	go b.serve()
	return b
}

// Host is host:port of the balancer.
func (b *Balancer) Host() string { return b.listener.Addr().String() }

// Only has the balancer lead to these servers from now on, and cuts what is open.
func (b *Balancer) Only(hosts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hosts = hosts
	for c := range b.open {
		_ = c.Close()
	}
}

func (b *Balancer) serve() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			return
		}
		go b.pass(client)
	}
}

func (b *Balancer) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	b.mu.Lock()
	if len(b.hosts) == 0 {
		b.mu.Unlock()
		return
	}
	host := b.hosts[b.next%len(b.hosts)]
	b.next++
	b.open[client] = struct{}{}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.open, client)
		b.mu.Unlock()
	}()
	server, err := (&net.Dialer{Timeout: startTimeout}).Dial("tcp", host)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}
