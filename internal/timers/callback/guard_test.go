package callback

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas/timer"
)

// forbidden are addresses that no timer may call. None of them is dialled.
var forbidden = []string{
	"127.0.0.1", "127.1.2.3", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.255.255",
	"169.254.169.254", "169.254.0.1", "100.64.0.1", "100.127.255.254", "192.0.0.1", "192.0.2.1", "198.51.100.7", "203.0.113.9", "198.18.0.1", "198.19.255.255",
	"192.88.99.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
	"[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:10.0.0.1]", "[::ffff:169.254.169.254]", "[64:ff9b::7f00:1]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::1]",
	"[2002:7f00:1::]", "[2002:a9fe:a9fe::]", "[2001::1]", "[2001:db8::1]", "[fe80::1]", "[fc00::1]", "[fd00:ec2::254]", "[ff02::1]", "[100::1]", "[3fff::1]", "[5f00::1]",
}

func TestForbiddenAddresses(t *testing.T) {
	if len(forbidden) < 40 {
		t.Fatalf("%d addresses", len(forbidden))
	}
	c := New(Config{})
	defer c.Close()
	for _, host := range forbidden {
		v, call, err := c.Call(t.Context(), &timer.Group{}, claimed(), &timer.Spec{URL: "http://" + host + "/"})
		if err != nil || v.Kind != timer.Fail || call.Error != timer.ErrBlocked {
			t.Errorf("%s: kind %d, %+v, %v; want %s, final", host, v.Kind, call, err, timer.ErrBlocked)
		}
	}
	for _, host := range []string{"93.184.216.34:22", "93.184.216.34:8123", "[2606:2800:220:1:248:1893:25c8:1946]:4222"} {
		if err := newGuard(nil).control("tcp4", host, nil); !errors.Is(err, ErrBlocked) {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"93.184.216.34:80", "1.1.1.1:443"} {
		if err := newGuard(nil).control("tcp4", host, nil); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// TestNamesThatResolveToForbiddenAddresses asks a resolver that answers every name with loopback, where
// a server listens that must not be reached.
func TestNamesThatResolveToForbiddenAddresses(t *testing.T) {
	var reached atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer s.Close()
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	resolver := rebinding(t)
	c := New(Config{Resolver: resolver})
	defer c.Close()
	for _, name := range []string{"rebind.example", "localhost", "metadata.google.internal", "127.0.0.1.nip.io"} {
		v, call, err := c.Call(t.Context(), &timer.Group{}, claimed(), &timer.Spec{URL: "http://" + name + port + "/", Timeout: 5 * time.Second})
		if err != nil || v.Kind != timer.TryAgain || call.Error != timer.ErrUnreachable {
			t.Errorf("%s: kind %d, %+v, %v", name, v.Kind, call, err)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
	allowed := New(Config{Resolver: resolver, AllowCIDRs: loopback})
	defer allowed.Close()
	if _, call, err := allowed.Call(t.Context(), &timer.Group{}, claimed(), &timer.Spec{URL: "http://rebind.example" + port + "/"}); err != nil || call.Status != 200 {
		t.Errorf("allowed by the operator: %+v, %v", call, err)
	}
}

// rebinding resolves every name to 127.0.0.1.
func rebinding(t *testing.T) *net.Resolver {
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pc.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			if answer := answerA(buf[:n]); answer != nil {
				_, _ = pc.WriteTo(answer, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", pc.LocalAddr().String())
	}}
}

// answerA answers a DNS query: 127.0.0.1 for A, nothing for others.
func answerA(q []byte) []byte {
	end := 12
	for end < len(q) && q[end] != 0 {
		end += int(q[end]) + 1
	}
	if end+5 > len(q) {
		return nil
	}
	isA := q[end+1] == 0 && q[end+2] == 1
	out := append([]byte{}, q[:end+5]...)
	out[2], out[3] = 0x81, 0x80
	copy(out[4:12], []byte{0, 1, 0, 0, 0, 0, 0, 0})
	if isA {
		out[7] = 1
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
	}
	return out
}

func TestHostsOfTheGroup(t *testing.T) {
	c := New(Config{AllowCIDRs: loopback})
	defer c.Close()
	v, call, err := c.Call(t.Context(), &timer.Group{AllowHosts: []string{"hooks.example.com"}}, claimed(), &timer.Spec{URL: "http://127.0.0.1:1/"})
	if err != nil || v.Kind != timer.Fail || call.Error != timer.ErrHost {
		t.Errorf("kind %d, %+v, %v", v.Kind, call, err)
	}
}

// Ranges that the operator opens, what they contain, and what is not one.
func TestParseRanges(t *testing.T) {
	for text, c := range map[string]struct {
		written   string
		in, notIn []string
	}{
		"127.0.0.1/32:9000":   {"127.0.0.1/32:9000", []string{"127.0.0.1:9000", "[::ffff:127.0.0.1]:9000"}, []string{"127.0.0.1:9001", "127.0.0.1:80", "127.0.0.2:9000"}},
		"127.0.0.0/8":         {"127.0.0.0/8", []string{"127.1.2.3:80", "127.1.2.3:443"}, []string{"127.0.0.1:4222", "127.0.0.1:8123", "127.0.0.1:9000", "127.0.0.1:7070"}},
		"10.1.2.3/16:80-90":   {"10.1.0.0/16:80-90", []string{"10.1.255.1:80", "10.1.0.1:90"}, []string{"10.1.0.1:79", "10.1.0.1:91", "10.2.0.1:80"}},
		"10.0.0.1:9000":       {"10.0.0.1/32:9000", []string{"10.0.0.1:9000"}, []string{"10.0.0.1:80"}},
		"10.0.0.1":            {"10.0.0.1/32", []string{"10.0.0.1:80"}, []string{"10.0.0.1:9000"}},
		"::1":                 {"::1/128", []string{"[::1]:443"}, []string{"[::1]:9000"}},
		"::1/128:9000":        {"::1/128:9000", []string{"[::1]:9000"}, []string{"[::1]:443"}},
		"[::1]:1-65535":       {"::1/128:1-65535", []string{"[::1]:1", "[::1]:65535"}, []string{"[::2]:1"}},
		" fd00::/8:8000-8001": {"fd00::/8:8000-8001", []string{"[fd00::9]:8001"}, []string{"[fd00::9]:8002"}},
	} {
		got, err := ParseRanges(text + ",")
		if err != nil || len(got) != 1 || got[0].String() != c.written {
			t.Errorf("%q: %v, %v", text, got, err)
			continue
		}
		for _, to := range c.in {
			if !got[0].contains(netip.MustParseAddrPort(to)) {
				t.Errorf("%s does not contain %s", text, to)
			}
		}
		for _, to := range c.notIn {
			if got[0].contains(netip.MustParseAddrPort(to)) {
				t.Errorf("%s contains %s", text, to)
			}
		}
	}
	for _, text := range []string{"localhost", "localhost:80", "127.0.0.1/32:", "127.0.0.1/32:0", "127.0.0.1/32:9-8", "127.0.0.1/32:65536", "127.0.0.1/33", "127.0.0.1/32:80-", "[::1", "[::1:9000", "1:2"} {
		if got, err := ParseRanges(text); err == nil {
			t.Errorf("%q was taken as %v", text, got)
		}
	}
}

// A server of the operator's on the address of a range, on another port than the range has.
func TestOtherPortsOfARange(t *testing.T) {
	var reached atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer s.Close()
	for _, text := range []string{"127.0.0.0/8", "127.0.0.1/32:9", "127.0.0.1:1-9"} {
		ranges, err := ParseRanges(text)
		if err != nil {
			t.Fatal(err)
		}
		c := New(Config{AllowCIDRs: ranges})
		defer c.Close()
		if v, call, err := c.Call(t.Context(), &timer.Group{}, claimed(), &timer.Spec{URL: s.URL}); err != nil || v.Kind != timer.Fail || call.Error != timer.ErrBlocked {
			t.Errorf("%s: kind %d, %+v, %v", text, v.Kind, call, err)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// Of names that resolve inside, names that do not resolve, and a resolver that is away, a timer says the
// same, word by word, and neither names the resolver.
func TestNamesTellNothing(t *testing.T) {
	inside := rebinding(t)
	away := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "udp", Addr: &net.UDPAddr{IP: net.IPv4(10, 9, 8, 7), Port: 53}, Err: errors.New("refused")}
	}}
	var want timer.Call
	for i, resolver := range []*net.Resolver{inside, away} {
		c := New(Config{Resolver: resolver})
		defer c.Close()
		v, call, err := c.Call(t.Context(), &timer.Group{}, claimed(), &timer.Spec{URL: "http://hr.corp.example/", Timeout: 5 * time.Second})
		if err != nil || v.Kind != timer.TryAgain {
			t.Errorf("kind %d, %+v, %v", v.Kind, call, err)
		}
		if call.Took = 0; i == 0 {
			want = call
		} else if call != want {
			t.Errorf("%+v, and of a name that resolves %+v", call, want)
		}
		for _, word := range []string{"10.9.8.7", "127.0.0.1", ":53", "lookup", "dial", "hr.corp"} {
			if strings.Contains(call.Detail, word) {
				t.Errorf("%q tells %s", call.Detail, word)
			}
		}
	}
}
