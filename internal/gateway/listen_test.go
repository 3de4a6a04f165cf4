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

// One address may have a quarter of a listener's connections.
func TestOneAddressLeavesConnections(t *testing.T) {
	t.Parallel()
	from := func(host string) *fakeConn {
		return &fakeConn{from: &net.TCPAddr{IP: net.ParseIP(host), Port: 1}, closed: make(chan struct{})}
	}
	under := &fakeListener{conns: make(chan net.Conn, 8)}
	l := limited(under, 8)
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
