package embeddedtest

import (
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
)

// Cable is a way to a server that can be cut: nothing comes through, and new connections are closed at once.
type Cable struct {
	l  net.Listener
	to string

	frozen atomic.Bool

	mu    sync.Mutex
	cut   bool
	conns map[net.Conn]bool
}

// NewCable lays a cable to the server at a URL until the test ends, and returns the URL at its near end.
func NewCable(t testing.TB, to string) (c *Cable, near string) {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c = &Cable{l: l, to: u.Host, conns: map[net.Conn]bool{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.serve()
	}()
	t.Cleanup(func() {
		_ = l.Close()
		c.Cut(true)
		<-ended
	})
	u.Host = l.Addr().String()
	return c, u.String()
}

// Cut cuts the cable, or mends it.
func (c *Cable) Cut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut = cut; cut {
		for conn := range c.conns {
			_ = conn.Close()
		}
		clear(c.conns)
	}
}

// Freeze lets nothing through while all connections stay, and new ones are taken: as a network does that drops packets, or a machine
// that stands still. Afterwards the connections end, for bytes are missing in them.
func (c *Cable) Freeze(frozen bool) {
	c.frozen.Store(frozen)
	if !frozen {
		c.Cut(true)
		c.Cut(false)
	}
}

// carry copies what one end says to the other, until either ends.
func (c *Cable) carry(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !c.frozen.Load() {
			if _, failed := to.Write(buf[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *Cable) serve() {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		near, err := c.l.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.to)
		if err != nil || !c.keep(near, far) {
			_ = near.Close()
			if far != nil {
				_ = far.Close()
			}
			continue
		}
		for _, pair := range [][2]net.Conn{{near, far}, {far, near}} {
			all.Go(func() {
				c.carry(pair[0], pair[1])
				_ = pair[0].Close()
				_ = pair[1].Close()
			})
		}
	}
}

// keep remembers the ends of a connection; false where the cable is cut.
func (c *Cable) keep(ends ...net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.cut {
		for _, e := range ends {
			c.conns[e] = true
		}
	}
	return !c.cut
}
