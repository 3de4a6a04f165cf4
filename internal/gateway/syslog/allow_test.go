package syslog

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"
)

// elsewhere is a connection, listener and socket whose peers seem to be at other addresses.
type elsewhere struct {
	net.Conn
	net.PacketConn
	from net.Addr
}

func (e elsewhere) RemoteAddr() net.Addr { return e.from }

func (e elsewhere) LocalAddr() net.Addr { return e.from }

func (e elsewhere) SetDeadline(time.Time) error      { return nil }
func (e elsewhere) SetReadDeadline(time.Time) error  { return nil }
func (e elsewhere) SetWriteDeadline(time.Time) error { return nil }

func (e elsewhere) Close() error {
	if e.Conn != nil {
		return e.Conn.Close()
	}
	return e.PacketConn.Close()
}

func (e elsewhere) ReadFrom(b []byte) (int, net.Addr, error) {
	n, _, err := e.PacketConn.ReadFrom(b)
	return n, e.from, err
}

type elsewhereListener struct {
	net.Listener
	from net.Addr
}

func (l elsewhereListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return elsewhere{Conn: c, from: l.from}, nil
}

func TestAllows(t *testing.T) {
	t.Parallel()
	l := Listeners{Allow: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8")}}
	for from, want := range map[string]bool{
		"10.1.2.3:5": true, "10.2.2.3:5": false, "[::ffff:10.1.2.3]:5": true, "[fd00::1%eth0]:5": true, "[fe80::1]:5": false,
		"127.0.0.1:5": true, "[::1]:5": true, "192.0.2.1:5": false,
	} {
		a := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(from))
		if got := l.Allows(a); got != want {
			t.Errorf("%s: %v", from, got)
		}
		if !(&Listeners{}).Allows(a) {
			t.Errorf("%s is refused where no network is named", from)
		}
	}
	if l.Allows(nil) || l.Allows(&net.UnixAddr{Name: "x"}) {
		t.Error("a sender without an address is taken")
	}
}

// Nothing of a sender from another network is read, over TCP or UDP, and each is named.
func TestSendersFromElsewhere(t *testing.T) {
	t.Parallel()
	from := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 5}
	stream, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	packets, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var said, counted []string
	heard := make(chan struct{}, 16)
	in := New(Config{Topic: "sys", OnError: func(err error) {
		mu.Lock()
		said = append(said, err.Error())
		mu.Unlock()
		heard <- struct{}{}
	}, OnLimit: func(what, why string) {
		mu.Lock()
		defer mu.Unlock()
		counted = append(counted, what+" "+why)
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- in.Run(ctx, Listeners{
			Streams: []net.Listener{elsewhereListener{stream, from}},
			Packets: []net.PacketConn{elsewhere{PacketConn: packets, from: from}},
			Allow:   []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		}, time.Second)
	}()
	tcp := dial(t, "tcp", stream.Addr().String())
	_, _ = tcp.Write([]byte("<13>hello\n")) // it may be closed before
	<-heard
	write(t, dial(t, "udp", packets.LocalAddr().String()), "<13>hello")
	<-heard
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for _, text := range said {
		if !strings.Contains(text, "192.0.2.1") || !strings.Contains(text, "syslog_allow") {
			t.Error(text)
		}
	}
	if len(counted) != 1 || counted[0] != "syslog connections not_allowed" { // the datagram is among the refused events
		t.Errorf("counted are %q", counted)
	}
	if got := in.Stats(); got != (Stats{Refused: 1}) || len(said) != 2 {
		t.Errorf("%+v, %q", got, said)
	}
}
