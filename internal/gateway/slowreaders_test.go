package gateway

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/request"
)

// pipes is a listener whose connections have no buffer: a write waits until its client reads.
type pipes struct {
	dialled chan net.Conn
	done    chan struct{}
	once    sync.Once
}

func newPipes() *pipes { return &pipes{dialled: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.dialled <- server
	return client
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialled:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error { p.once.Do(func() { close(p.done) }); return nil }

// Addr implements net.Listener.
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

// A client that takes its answer slowly is cut, whatever route it asked: its handler returns, with all that it holds. One that keeps
// the pace gets all of a long answer.
func TestSlowReaders(t *testing.T) {
	t.Parallel()
	const whole = 1 << 40 // of an answer without an end
	for name, c := range map[string]struct {
		streams bool
		bytes   int           // of the answer
		each    int           // bytes that the client reads at once
		every   time.Duration // 0: it reads nothing
		held    time.Duration // at most; 0: it gets all
	}{
		"a stream of which nothing is read":          {streams: true, bytes: whole, held: 30 * time.Second},
		"an answer of which nothing is read":         {bytes: 1 << 20, held: 30 * time.Second},
		"a stream, a byte a second":                  {streams: true, bytes: whole, each: 1, every: time.Second, held: 30 * time.Second},
		"a stream, a piece just before each stall":   {streams: true, bytes: whole, each: 64 << 10, every: 29 * time.Second, held: 100 * time.Second},
		"a stream, half of the pace":                 {streams: true, bytes: whole, each: 8 << 10, every: time.Second, held: 130 * time.Second},
		"an answer, a little over the pace":          {bytes: 8 << 20, each: 17 << 10, every: time.Second, held: answerWait},
		"a stream at a little over the pace":         {streams: true, bytes: 8 << 20, each: 17 << 10, every: time.Second},
		"an answer at a little over the pace":        {bytes: 600 << 10, each: 17 << 10, every: time.Second},
		"a stream whose client is away for a while":  {streams: true, bytes: 8 << 20, each: 600 << 10, every: 25 * time.Second},
		"an answer of which the buffer holds enough": {bytes: 10, each: 1 << 10, every: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				type result struct {
					held time.Duration
					err  error
				}
				left := make(chan result, 1)
				handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					<-time.After(time.Minute) // what an answer takes to come about is not its client's fault
					if c.streams {
						request.Streams(w)
					}
					began, r, part := time.Now(), result{}, make([]byte, 200<<10)
					for n := 0; n < c.bytes && r.err == nil; n += len(part) {
						_, r.err = w.Write(part[:min(len(part), c.bytes-n)])
					}
					r.held = time.Since(began)
					left <- r
				})
				l := newPipes()
				g, failed := New(Config{}), make(chan error, 1)
				srv := g.serveHTTP("HTTP", l, handler, failed)
				client := l.dial()
				if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
					t.Fatal(err)
				}
				read := make(chan int, 1)
				go func() {
					n, buf := 0, make([]byte, c.each)
					for c.every > 0 {
						got, err := io.ReadFull(client, buf)
						if n += got; err != nil {
							break
						}
						<-time.After(c.every)
					}
					read <- n
				}()
				r := <-left
				if c.held > 0 {
					_ = client.Close()
				}
				n := <-read
				switch {
				case c.held == 0 && (r.err != nil || n < c.bytes):
					t.Errorf("cut after %s, with %d of %d bytes: %v", r.held, n, c.bytes, r.err)
				case c.held > 0 && (!errors.Is(r.err, os.ErrDeadlineExceeded) || r.held > c.held):
					t.Errorf("held for %s, want %s at most (%v)", r.held, c.held, r.err)
				}
				_ = client.Close()
				if err := srv.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A client of gRPC that takes nothing of its answers is cut.
func TestStalledConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		l := unstalled{Bounded(p, Bound{Connections: 10})}
		go func() { _ = p.dial() }()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != stallWait {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		if err := errors.Join(c.Close(), l.Close()); err != nil {
			t.Error(fmt.Errorf("closing: %w", err))
		}
	})
}
