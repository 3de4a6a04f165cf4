package gateway

import (
	"net"
	"testing"
)

// fakeConn is a connection that comes from somewhere.
type fakeConn struct {
	net.Conn
	from   net.Addr
	closed chan struct{}
}

func (c *fakeConn) RemoteAddr() net.Addr { return c.from }

func (c *fakeConn) Close() error {
	close(c.closed)
	return nil
}

// fakeListener accepts what it is given.
type fakeListener struct {
	net.Listener
	conns chan net.Conn
}

func (l *fakeListener) Accept() (net.Conn, error) { return <-l.conns, nil }

// One host has a /64 of IPv6 whole, so that is what a quarter is of; an address of IPv4 is the same one written as IPv6.
func TestOneNetworkLeavesConnections(t *testing.T) {
	t.Parallel()
	for name, hosts := range map[string][4]string{
		"a /64":  {"2001:db8::1", "2001:db8::2", "2001:db8::ffff:3", "2001:db8:0:1::1"},
		"mapped": {"192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			under := &fakeListener{conns: make(chan net.Conn, len(hosts))}
			l := Bounded(under, Bound{Connections: 8})
			var conns []*fakeConn
			for _, host := range hosts {
				c := &fakeConn{from: &net.TCPAddr{IP: net.ParseIP(host), Port: 1}, closed: make(chan struct{})}
				conns = append(conns, c)
				under.conns <- c
			}
			for _, want := range []int{0, 1, 3} {
				c, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				if c.RemoteAddr() != conns[want].from {
					t.Fatalf("accepted %s, want %s", c.RemoteAddr(), conns[want].from)
				}
			}
			<-conns[2].closed
		})
	}
}

// One address may have a quarter of a listener's connections.
func TestOneAddressLeavesConnections(t *testing.T) {
	t.Parallel()
	from := func(host string) *fakeConn {
		return &fakeConn{from: &net.TCPAddr{IP: net.ParseIP(host), Port: 1}, closed: make(chan struct{})}
	}
	under := &fakeListener{conns: make(chan net.Conn, 8)}
	l := Bounded(under, Bound{Connections: 8})
	accept := func() net.Conn {
		t.Helper()
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first, second, third, other := from("192.0.2.1"), from("192.0.2.1"), from("192.0.2.1"), from("192.0.2.2")
	under.conns <- first
	under.conns <- second
	under.conns <- third
	under.conns <- other
	kept := accept()
	accept()
	if got := accept().RemoteAddr(); got != other.from {
		t.Fatalf("accepted one of %s beyond its quarter", got)
	}
	<-third.closed
	_ = kept.Close()
	again := from("192.0.2.1")
	under.conns <- again
	if got := accept().RemoteAddr(); got != again.from {
		t.Fatalf("accepted %s and not the one that had room", got)
	}
	for range 4 { // this machine's own programs share an address
		under.conns <- from("127.0.0.1")
		accept()
	}
}
