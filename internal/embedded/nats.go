package embedded

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// NATS is a NATS server with JetStream in this process. It listens on loopback for other processes and hands out
// connections without a socket to this one.
type NATS struct {
	cfg  NATSConfig
	used atomic.Bool
	life life

	port    int         // decided at the first start, before life is ready
	local   *tls.Config // for programs of this machine, and localCA its certificate; both empty without TLS
	localCA string
	short   atomic.Bool  // the disk had too little room when limit was decided
	limit   atomic.Int64 // bytes for all streams, decided at the first start, and again when short ends
	last    storing
	server  atomic.Pointer[server.Server] // nil while down; replaced at a restart
	checks  checks
}

// NewNATS checks the configuration. Nothing runs before Run.
func NewNATS(cfg NATSConfig) (*NATS, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	n := &NATS{cfg: cfg, life: newLife()}
	if cfg.TLS != nil {
		var err error
		if n.local, n.localCA, err = localPair(time.Now()); err != nil {
			return nil, fmt.Errorf("embedded NATS: %w", err)
		}
	}
	return n, nil
}

// Run starts the server, keeps it alive and stops it when ctx ends; it then returns nil. An error means that it did
// not come up the first time, or ErrHung: then the server still holds its files and its port, and the caller should end
// the process. After a full disk Run restarts the server once there is space again.
func (n *NATS) Run(ctx context.Context) error {
	if n.used.Swap(true) {
		return fmt.Errorf("embedded NATS: %w", ErrUsedTwice)
	}
	err := n.firstStart()
	if err != nil {
		n.life.fail(err)
		return err
	}
	n.life.up()
	if err := n.watch(ctx); err != nil {
		n.server.Store(nil) // new connections are refused, rather than hang
		return err
	}
	return n.stop()
}

// WaitReady returns when clients may connect, with the start's error when it failed, or with ctx's.
func (n *NATS) WaitReady(ctx context.Context) error { return n.life.wait(ctx, "NATS") }

// ClientURL is where other processes of this machine connect. Valid once ready; the same after a restart.
func (n *NATS) ClientURL() string {
	host, scheme := n.cfg.Host, "nats://"
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if n.cfg.TLS != nil {
		scheme = "tls://"
	}
	return scheme + n.at(host)
}

// InProcessURL is the address that goes with InProcessConn, which has no TLS.
func (n *NATS) InProcessURL() string { return "nats://" + n.at(n.cfg.Host) }

// PublicURL is where other machines connect, by a name of its certificate; empty on loopback. Valid once ready.
func (n *NATS) PublicURL() string {
	if isLoopback(n.cfg.Host) || n.cfg.TLS == nil {
		return ""
	}
	host := n.cfg.PublicName
	if host == "" {
		host, _ = certifiedName(n.cfg.TLS) // validate has looked
	}
	return "tls://" + n.at(host)
}

// LocalCA is the certificate that programs of this machine trust, in PEM; empty without TLS.
func (n *NATS) LocalCA() string { return n.localCA }

func (n *NATS) at(host string) string { return net.JoinHostPort(host, strconv.Itoa(n.port)) }

// Port it listens on. Valid once ready.
func (n *NATS) Port() int { return n.port }

// StoreLimit is what all streams together may hold, in bytes: divide it among them. Valid once ready.
func (n *NATS) StoreLimit() int64 { return n.limit.Load() }

// DefaultStoreLimit returns what all streams below a directory may hold unless it is said: three quarters of
// what is free or theirs on its disk. The directory need not exist yet.
func DefaultStoreLimit(dir string) (int64, error) {
	at := dir
	for {
		free, err := FreeBytes(at)
		if err == nil {
			return (free + usedBytes(dir)) / 4 * 3, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			return 0, err
		}
		at = filepath.Dir(at)
	}
}

// InProcessConn gives a connection without a socket: nats.Connect("", nats.InProcessServer(n)). It always leads to the
// server that runs now, so that such a client reconnects after a restart too.
func (n *NATS) InProcessConn() (net.Conn, error) {
	s := n.server.Load()
	if s == nil {
		return nil, fmt.Errorf("embedded NATS: %w", ErrNotRunning)
	}
	return s.InProcessConn()
}

// prepare decides what stays the same over restarts: directory and limit.
func (n *NATS) prepare() error {
	if err := os.MkdirAll(n.cfg.Dir, 0o700); err != nil {
		return fmt.Errorf("embedded NATS: creating the directory of its streams: %w", err)
	}
	n.limit.Store(n.cfg.MaxStoreBytes)
	if n.cfg.MaxStoreBytes == 0 {
		limit, err := DefaultStoreLimit(n.cfg.Dir)
		if err != nil {
			return fmt.Errorf("embedded NATS: %w", err)
		}
		n.limit.Store(limit)
		n.short.Store(errors.Is(n.Space(), ErrDiskSpace)) // one that does not answer is not known to be short
	}
	return nil
}

// firstStart starts the server on the port it is to have; a free port that another process took meanwhile is replaced.
func (n *NATS) firstStart() error {
	if err := n.prepare(); err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		port, err := claimPort(n.cfg.Host, n.cfg.Port)
		if err != nil {
			return fmt.Errorf("embedded NATS: %w", err)
		}
		n.port = port
		err = n.start()
		if err == nil || n.cfg.Port > 0 || attempt == bindAttempts || !errors.Is(err, ErrPortInUse) {
			return err
		}
	}
}

// start brings one server object up or leaves nothing behind.
func (n *NATS) start() error {
	opts, err := n.cfg.options(n.port, n.local)
	if err != nil {
		return err
	}
	opts.JetStreamMaxStore = n.limit.Load()
	s, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("embedded NATS %w: %w", ErrStart, err)
	}
	log := &natsLog{log: n.cfg.Log}
	s.SetLoggerV2(log, false, false, false)
	go s.Start()

	deadline := time.Now().Add(n.cfg.StartTimeout)
	for !s.ReadyForConnections(20 * time.Millisecond) {
		words := log.lastWords()
		if words == "" && time.Now().Before(deadline) {
			continue
		}
		s.Shutdown()
		return n.startError(words)
	}
	if words := log.lastWords(); words != "" { // up, but without its store
		s.Shutdown()
		s.WaitForShutdown()
		return n.startError(words)
	}
	n.server.Store(s)
	return nil
}

// startError turns the server's last words into what happened, to what, and what to do.
func (n *NATS) startError(words string) error {
	switch {
	case words == "":
		return fmt.Errorf("embedded NATS %w within %s: it may still be recovering the streams in %s; "+
			"give it longer, or look at that disk", ErrStart, n.cfg.StartTimeout, n.cfg.Dir)
	case strings.Contains(words, "address already in use"):
		return fmt.Errorf("embedded NATS: %w", portTaken(n.cfg.Host, n.port))
	case strings.Contains(words, "JetStream"):
		return fmt.Errorf("embedded NATS %w: its store in %s: %s: check free space and that this user owns the files",
			ErrStart, n.cfg.Dir, words)
	}
	return fmt.Errorf("embedded NATS %w: %w", ErrStart, errors.New(words))
}

// stop ends the server. One that hangs it gives up after HungAfter, with ErrHung.
func (n *NATS) stop() error {
	s := n.server.Swap(nil)
	if s == nil {
		return nil
	}
	stopped := make(chan struct{})
	go func() {
		s.Shutdown()
		s.WaitForShutdown()
		close(stopped)
	}()
	timer := time.NewTimer(n.cfg.HungAfter)
	defer timer.Stop()
	select {
	case <-stopped:
		return nil
	case <-timer.C:
		return n.hung("it did not stop within " + n.cfg.HungAfter.String())
	}
}
