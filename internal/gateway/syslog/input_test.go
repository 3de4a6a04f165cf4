package syslog

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
	"github.com/almanac-events/almanac/schemas"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

// running is an input with a listener of each kind.
type running struct {
	env           *pooltest.Env
	in            *Input
	tcp, tls, udp string
	roots         *x509.CertPool
	stop          func()
}

func run(t *testing.T, change func(*pool.Config), topics ...schemas.Topic) *running {
	t.Helper()
	r := &running{env: pooltest.Start(t, change, topics...)}
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	plain, secure := listen(), listen()
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	certificate, roots := certificate(t)
	r.tcp, r.tls, r.udp, r.roots = plain.Addr().String(), secure.Addr().String(), packets.LocalAddr().String(), roots
	r.in = New(Config{Pool: r.env.Pool, Topic: "sys", OnError: func(err error) { t.Log(err) }})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- r.in.Run(ctx, Listeners{
			Streams: []net.Listener{plain, tls.NewListener(secure, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})},
			Packets: []net.PacketConn{packets},
		}, time.Minute)
	}()
	var stopped atomic.Bool
	r.stop = func() {
		if stopped.Swap(true) {
			return
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the input ended: %v", err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func dial(t *testing.T, network, address string) net.Conn {
	t.Helper()
	c, err := net.Dial(network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func write(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// stored waits until the topic has n events.
func (r *running) stored(t *testing.T, n int) []schemas.Event {
	t.Helper()
	var events []schemas.Event
	eventually(t, time.Minute, fmt.Sprintf("%d events are stored", n), func() bool {
		events = r.env.Events("sys")
		return len(events) >= n
	})
	if len(events) != n {
		t.Fatalf("%d events are stored, expected %d", len(events), n)
	}
	return events
}

// eventually waits until ok, and fails with what did not become so.
func eventually(t *testing.T, d time.Duration, what string, ok func() bool) {
	t.Helper()
	embeddedtest.Eventually(t, d, func() error {
		if !ok() {
			return errors.New("not so: " + what)
		}
		return nil
	})
}

func sys() schemas.Topic { return schemas.Topic{Name: "sys", Lanes: 1} }

func TestListenersTakeMessages(t *testing.T) {
	t.Parallel()
	r := run(t, nil, sys())
	write(t, dial(t, "tcp", r.tcp), "<13>1 - vm tcp - - - one\n35 <13>1 - vm tcp - - - two\nwith lines")
	secure, err := tls.Dial("tcp", r.tls, &tls.Config{RootCAs: r.roots, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	defer secure.Close()
	write(t, secure, "<13>1 - vm tls - - - three\n")
	udp := dial(t, "udp", r.udp)
	write(t, udp, "<13>1 - vm udp - - - four")
	write(t, udp, "no priority")
	got := map[string]string{}
	for _, ev := range r.stored(t, 5) {
		got[ev.Message] = ev.Service
		if ev.Message == "no priority" && ev.Attrs[0].Text() != "127.0.0.1" {
			t.Errorf("the datagram without a host has %+v", ev.Attrs)
		}
	}
	for message, service := range map[string]string{"one": "tcp", "two\nwith lines": "tcp", "three": "tls", "four": "udp", "no priority": ""} {
		if s, ok := got[message]; !ok || s != service {
			t.Errorf("%q came from %q, expected %q: %v", message, s, service, got)
		}
	}
	r.stop()
	if s := r.in.Stats(); s != (Stats{Taken: 5, Whole: 1}) {
		t.Errorf("%+v", s)
	}
}

func TestRecordedStreamIsStored(t *testing.T) {
	t.Parallel()
	body := inputtest.RecordedBytes(t, "rsyslog-rfc5424-octet-counted.tcp.body")
	r := run(t, nil, sys())
	write(t, dial(t, "tcp", r.tcp), string(body))
	var got []string
	for _, ev := range r.stored(t, 3) {
		got = append(got, ev.Message)
	}
	if want := "hello from logger é| hello via unix socket|structured"; strings.Join(got, "|") != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

// What was sent before the input stops is stored, and a message that is cut off too.
func TestStoppingKeepsWhatWasSent(t *testing.T) {
	t.Parallel()
	r := run(t, nil, sys())
	c := dial(t, "tcp", r.tcp)
	const n = 500
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "<13>1 - vm app - - - message %d\n", i)
	}
	write(t, c, b.String()+"<13>1 - vm app - - - half of")
	eventually(t, time.Minute, "messages are taken", func() bool { return r.in.Stats().Taken > 0 })
	r.stop()
	events := r.stored(t, n+1)
	for i := range n {
		if want := fmt.Sprintf("message %d", i); events[i].Message != want {
			t.Fatalf("event %d is %q, expected %q", i, events[i].Message, want)
		}
	}
	last := events[n]
	if e := last.Attrs[len(last.Attrs)-1]; last.Message != "half of" || e.Key != AttrError || !strings.HasPrefix(e.Text(), "the connection ended within this message") {
		t.Errorf("%q, %s %s", last.Message, e.Key, e.Text())
	}
}

// While the topic does not exist a TCP sender is held back, and datagrams are dropped
// and counted. Nothing that was read from TCP is lost.
func TestSendersAreHeldBack(t *testing.T) {
	t.Parallel()
	r := run(t, func(c *pool.Config) { c.Hold = time.Millisecond })
	c := dial(t, "tcp", r.tcp)
	line := "<13>1 - vm app - - - " + strings.Repeat("x", 16<<10) + "\n"
	var sent atomic.Int64
	done := make(chan error, 1)
	const lines = 4000 // 64 MB: more than the queue and the kernel hold
	go func() {
		for range lines {
			if _, err := c.Write([]byte(line)); err != nil {
				done <- err
				return
			}
			sent.Add(1)
		}
		done <- c.Close()
	}()
	udp := dial(t, "udp", r.udp)
	datagram := line[:60<<8]
	eventually(t, time.Minute, "datagrams are dropped", func() bool {
		for range 100 {
			_, _ = udp.Write([]byte(datagram))
		}
		return r.in.Stats().Dropped > 0
	})
	eventually(t, time.Minute, "the queue is full", func() bool {
		_, ok := r.in.streams.try(schemas.Event{Message: strings.Repeat("y", MaxLineBytes)})
		return !ok
	})
	r.in.streams.mu.Lock()
	queued := r.in.streams.bytes
	r.in.streams.mu.Unlock()
	if queued > StreamBytes || sent.Load() == lines {
		t.Errorf("%d bytes are queued, %d lines were sent", queued, sent.Load())
	}
	r.env.Apply(sys())
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Minute, "all lines are stored", func() bool {
		n := 0
		for _, ev := range r.env.Events("sys") {
			if ev.Message == line[len("<13>1 - vm app - - - "):len(line)-1] {
				n++
			}
		}
		return n == lines
	})
}

func TestAFailedListenerEndsTheInput(t *testing.T) {
	t.Parallel()
	env := pooltest.Start(t, nil, sys())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	if err := New(Config{Pool: env.Pool, Topic: "sys"}).Run(t.Context(), Listeners{Streams: []net.Listener{l}}, time.Second); err == nil {
		t.Error("no error of a closed listener")
	}
}

// A page can have a browser send lines to any port. None of a connection that begins as a browser's is taken.
func TestBrowsersWriteNothing(t *testing.T) {
	t.Parallel()
	r := run(t, nil, schemas.NewTopic("sys"))
	for name, text := range map[string]string{
		"a form":       "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\n\r\n<13>Nov 20 10:00:00 host app: written by a page\r\n",
		"an image":     "GET /a%0a<13>x HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"a web socket": "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
		"a preflight":  "OPTIONS / HTTP/1.1\r\nAccess-Control-Request-Method: POST\r\n\r\n",
		"HTTP/2":       "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"TLS":          "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n<13>Nov 20 10:00:00 host app: written by a page\n",
	} {
		c := dial(t, "tcp", r.tcp)
		write(t, c, text)
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := c.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the connection stays: %v", name, err)
		}
	}
	c := dial(t, "tcp", r.tcp)
	write(t, c, "<13>Nov 20 10:00:00 host app: GET / HTTP/1.1\nGET /second HTTP/1.1\n")
	_ = c.Close()
	embeddedtest.Eventually(t, time.Minute, func() error {
		if n := len(r.env.Events("sys")); n != 2 {
			return fmt.Errorf("%d messages", n)
		}
		return nil
	})
}
