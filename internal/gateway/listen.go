package gateway

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

// Bounds of a listener.
const (
	// maxConnections of one listener; more wait in the kernel's queue.
	maxConnections = 4096
	maxGRPC        = 512
	headerWait     = 5 * time.Second
	headerBytes    = 32 << 10
	idleWait       = 75 * time.Second
	// answerWait bounds a request whose answer does not stream, from its head until its client has all of the answer.
	answerWait = 2 * time.Minute
	// leaveWait and leaveBytes bound what is still taken of a request that was refused, so that its
	// client reads the refusal.
	leaveWait  = 2 * time.Second
	leaveBytes = 4 << 20
	// stallWait bounds a write to a client of gRPC that takes nothing: its answers wait in memory meanwhile.
	stallWait = 30 * time.Second
)

// httpServer is a listener of HTTP.
type httpServer struct{ srv *http.Server }

// serveHTTP serves a handler.
func (g *Gateway) serveHTTP(name string, l net.Listener, h http.Handler, failed chan<- error) server {
	srv := &http.Server{
		Handler: request.Pacing(h, answerWait), ReadHeaderTimeout: headerWait, IdleTimeout: idleWait, WriteTimeout: answerWait, MaxHeaderBytes: headerBytes,
		ErrorLog: quiet(),
	}
	go func() {
		if err := srv.Serve(Secured(limited(l, maxConnections), g.cfg.TLS)); err != nil && !errors.Is(err, http.ErrServerClosed) {
			select {
			case failed <- fmt.Errorf("%s: %w", name, err):
			default:
			}
		}
	}()
	return &httpServer{srv}
}

// Secured returns a listener of TLS, or l where c is nil. HTTP over it is 1.1, whose bounds on a connection
// are those of this package; HTTP/2 would have streams and windows of its own.
func Secured(l net.Listener, c *tls.Config) net.Listener {
	if c == nil {
		return l
	}
	return tls.NewListener(l, c)
}

// Shutdown implements server.
func (s *httpServer) Shutdown(ctx context.Context) error {
	err := s.srv.Shutdown(ctx)
	if err != nil {
		_ = s.srv.Close()
	}
	return err
}

// limitListener accepts so many connections at once. Of an address other than this
// machine's it keeps a quarter of them and closes more.
type limitListener struct {
	net.Listener
	slots chan struct{}
	done  chan struct{}
	once  sync.Once
	each  int

	mu sync.Mutex
	by map[string]int // connections of each address that is bounded
}

// Bounded returns a listener that accepts so many connections at once; more wait in
// the kernel's queue.
func Bounded(l net.Listener, n int) net.Listener { return limited(l, n) }

func limited(l net.Listener, n int) net.Listener {
	return &limitListener{Listener: l, slots: make(chan struct{}, n), done: make(chan struct{}), each: max(n/4, 1), by: map[string]int{}}
}

// Accept waits for a slot and then for a connection. It closes those of an address that
// has as many as one may.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			<-l.slots
			return nil, err
		}
		from := pool.PeerOf(c.RemoteAddr().String())
		if !l.enter(from) {
			_ = c.Close()
			continue
		}
		return &limitedConn{Conn: c, free: func() {
			l.leave(from)
			<-l.slots
		}}, nil
	}
}

func (l *limitListener) enter(from string) bool {
	if from == "" {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by[from] >= l.each {
		return false
	}
	l.by[from]++
	return true
}

func (l *limitListener) leave(from string) {
	if from == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by[from]--; l.by[from] == 0 {
		delete(l.by, from)
	}
}

// Close ends Accept too.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// quiet drops what net/http says of single connections: resets and bad handshakes.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

type limitedConn struct {
	net.Conn
	once sync.Once
	free func()
}

// CloseWrite ends the answer, and takes what the client is still sending. net/http calls it where it
// refuses a request that it did not read to its end. Closed with bytes unread, the connection
// would be reset, and the client might never see why.
func (c *limitedConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	if err := half.CloseWrite(); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(leaveWait))
	_, _ = io.CopyN(io.Discard, c.Conn, leaveBytes) // ends with the client, or at a bound
	return nil
}

// Close gives the slot back.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.free)
	return err
}

// unstalled is a listener whose connections end where a write waits for stallWait.
type unstalled struct{ net.Listener }

// Accept implements net.Listener.
func (l unstalled) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &unstalledConn{c}, nil
}

type unstalledConn struct{ net.Conn }

// Write implements io.Writer.
func (c *unstalledConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(stallWait)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}
