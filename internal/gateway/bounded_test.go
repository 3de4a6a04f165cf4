package gateway

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/request"
)

// fromConn is a connection of an address.
type fromConn struct {
	net.Conn
	from string
}

func (c *fromConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.from), Port: 1} }

// stranger is an address from which nothing is taken.
const stranger = "203.0.113.9"

// idleRig is a listener of four connections, which may idle for five minutes where others wait.
type idleRig struct {
	under    *pipes
	accepted chan *served
	ended    []string
}

// served is a connection that is read until it ends.
type served struct {
	net.Conn
	err chan error
}

func newIdleRig(t *testing.T) *idleRig {
	t.Helper()
	r := &idleRig{under: newPipes(), accepted: make(chan *served, 8)}
	l := Bounded(r.under, Bound{What: "syslog connections", Connections: 4, Idle: 5 * time.Minute, Allows: func(from net.Addr) bool { return from.(*net.TCPAddr).IP.String() != stranger }, OnLimit: func(_, why string) { r.ended = append(r.ended, why) }})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			one := &served{c, make(chan error, 1)}
			r.accepted <- one
			go func() {
				_, err := io.Copy(io.Discard, c)
				_ = c.Close()
				one.err <- err
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return r
}

// counted waits until all rest, then gives why connections were ended since it was last asked.
func (r *idleRig) counted() []string {
	synctest.Wait()
	ended := r.ended
	r.ended = nil
	return ended
}

// dial connects from an address.
func (r *idleRig) dial(from string) net.Conn {
	client, server := net.Pipe()
	r.under.dialled <- &fromConn{server, from}
	return client
}

// Where all connections of a listener are open, the one that is idle longest makes room, once it is idle for so long. One that is in use
// stays, and so do all where no other waits.
func TestIdleConnectionsEndForOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newIdleRig(t)
		var clients []net.Conn
		var conns []*served
		for range 4 {
			clients = append(clients, r.dial("127.0.0.1"))
			conns = append(conns, <-r.accepted)
			<-time.After(time.Minute)
		}
		<-time.After(10 * time.Hour)
		if ended := r.counted(); len(ended) > 0 {
			t.Fatalf("no other waits, and %v ended", ended)
		}
		unknown := r.dial(stranger)
		_, err := unknown.Read(make([]byte, 1))
		if ended := r.counted(); !errors.Is(err, io.EOF) || len(ended) != 1 || ended[0] != request.LimitNotAllowed {
			t.Fatalf("an address from which nothing is taken: %v, counted are %v", err, ended)
		}
		for _, i := range []int{1, 0, 3, 2} { // the second is idle longest from here on
			if _, err := clients[i].Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Minute)
		}
		began := time.Now()
		clients = append(clients, r.dial("127.0.0.1"))
		<-r.accepted
		if waited := time.Since(began); waited < time.Minute || waited > time.Minute+2*idleLook {
			t.Errorf("it waited %s, want until one is idle for five minutes", waited)
		}
		if err := <-conns[1].err; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the one that is idle longest: %v", err)
		}
		for _, i := range []int{0, 2, 3} {
			if _, err := clients[i].Write([]byte("x")); err != nil {
				t.Errorf("connection %d is ended too: %v", i, err)
			}
		}
		if ended := r.counted(); len(ended) != 1 || ended[0] != limitIdle {
			t.Errorf("counted are %v", ended)
		}
		for _, c := range clients {
			_ = c.Close()
		}
	})
}

// An address that has its quarter gets another connection for one of its own that is idle, and none for those of others.
func TestIdleConnectionsOfAnAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newIdleRig(t)
		other := r.dial("192.0.2.9")
		<-r.accepted
		first := r.dial("192.0.2.1")
		one := <-r.accepted
		<-time.After(4 * time.Minute)
		if _, err := first.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		<-time.After(4 * time.Minute) // the other is idle for longer
		refused := r.dial("192.0.2.1")
		if _, err := refused.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("a second one while the first is in use: %v", err)
		}
		<-time.After(2 * time.Minute)
		second := r.dial("192.0.2.1")
		<-r.accepted
		if err := <-one.err; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the first one: %v", err)
		}
		for _, c := range []net.Conn{other, second} {
			if _, err := c.Write([]byte("x")); err != nil {
				t.Errorf("it is ended too: %v", err)
			}
			_ = c.Close()
		}
		if ended := r.counted(); len(ended) != 2 || ended[0] != "share" || ended[1] != limitIdle {
			t.Errorf("counted are %v", ended)
		}
	})
}

// A connection whose reader is busy is not idle, however long ago it was read.
func TestBusyReadersAreNotIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		under := &fakeListener{conns: make(chan net.Conn, 8)}
		l := Bounded(under, Bound{What: "syslog connections", Connections: 4, Idle: 5 * time.Minute})
		client, server := net.Pipe()
		under.conns <- &fromConn{server, "192.0.2.1"}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour) // its messages wait for the stream
		_, again := net.Pipe()
		under.conns <- &fromConn{again, "192.0.2.1"}
		third, last := net.Pipe()
		under.conns <- &fromConn{last, "192.0.2.2"}
		if got, err := l.Accept(); err != nil || got.RemoteAddr().String() != "192.0.2.2:1" {
			t.Fatalf("%v %v", got, err)
		}
		go func() { _, _ = client.Write([]byte("x")) }()
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Errorf("it is ended: %v", err)
		}
		_ = third.Close()
	})
}
