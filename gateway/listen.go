package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// Bounds of a listener.
const (
	// maxConnections of one listener; more wait in the kernel's queue.
	maxConnections = 4096
	maxGRPC        = 512
	headerWait     = 5 * time.Second
	headerBytes    = 32 << 10
	idleWait       = 75 * time.Second
	// answerWait bounds the write of an answer that does not stream: those that do set
	// their own deadlines.
	answerWait = 2 * time.Minute
)

// httpServer is a listener of HTTP.
type httpServer struct{ srv *http.Server }

// serveHTTP serves a handler.
func serveHTTP(name string, l net.Listener, h http.Handler, failed chan<- error) server {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: headerWait, IdleTimeout: idleWait, WriteTimeout: answerWait, MaxHeaderBytes: headerBytes,
		ErrorLog: quiet(),
	}
	go func() {
		if err := srv.Serve(limited(l, maxConnections)); err != nil && !errors.Is(err, http.ErrServerClosed) {
			select {
			case failed <- fmt.Errorf("%s: %w", name, err):
			default:
			}
		}
	}()
	return &httpServer{srv}
}

// Shutdown implements server.
func (s *httpServer) Shutdown(ctx context.Context) error {
	err := s.srv.Shutdown(ctx)
	if err != nil {
		_ = s.srv.Close()
	}
	return err
}

// limitListener accepts so many connections at once.
type limitListener struct {
	net.Listener
	slots chan struct{}
	done  chan struct{}
	once  sync.Once
}

// Bounded returns a listener that accepts so many connections at once; more wait in
// the kernel's queue.
func Bounded(l net.Listener, n int) net.Listener { return limited(l, n) }

func limited(l net.Listener, n int) net.Listener {
	return &limitListener{Listener: l, slots: make(chan struct{}, n), done: make(chan struct{})}
}

// Accept waits for a slot and then for a connection.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, free: func() { <-l.slots }}, nil
}

// Close ends Accept too.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	once sync.Once
	free func()
}

// Close gives the slot back.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.free)
	return err
}
