package embeddedtest

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Cable is a way to a server that can be cut: nothing comes through, and new connections are closed at once. It can be frozen too:
// connections stay, new ones are taken, and nothing comes through.
type Cable struct {
	l  net.Listener
	to string

	mu    sync.Mutex
	cut   bool
	flows chan struct{} // closed while the cable is not frozen
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
	c = &Cable{l: l, to: u.Host, flows: make(chan struct{}), conns: map[net.Conn]bool{}}
	close(c.flows)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.serve()
	}()
	t.Cleanup(func() {
		_ = l.Close()
		c.Cut(true)
		c.Freeze(false)
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

// Freeze freezes the cable, or has what was held come through.
func (c *Cable) Freeze(frozen bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.flows:
		if frozen {
			c.flows = make(chan struct{})
		}
	default:
		if !frozen {
			close(c.flows)
		}
	}
}

// frozen is a writer that waits while the cable is frozen.
type frozen struct {
	c  *Cable
	to net.Conn
}

func (f frozen) Write(p []byte) (int, error) {
	f.c.thawed()
	return f.to.Write(p)
}

// thawed waits while the cable is frozen.
func (c *Cable) thawed() {
	c.mu.Lock()
	flows := c.flows
	c.mu.Unlock()
	<-flows
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
				_, _ = io.Copy(frozen{c, pair[0]}, pair[1])
				c.thawed() // that an end is closed does not come through either
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
