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
	"time"

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
		if err := srv.Serve(Secured(Bounded(l, Bound{What: name + " connections", Connections: maxConnections, OnLimit: g.cfg.OnLimit}), g.cfg.TLS)); err != nil && !errors.Is(err, http.ErrServerClosed) {
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

// quiet drops what net/http says of single connections: resets and bad handshakes.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

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
