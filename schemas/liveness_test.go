package schemas

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

func TestLiveness(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		servers          []string
		left             time.Duration // a server that does not answer is left by then
		ownWrite, wanted time.Duration // how long a write waits
	}{
		"alone":             {servers: []string{"nats://a:4222"}, left: 9 * time.Second, ownWrite: 7 * time.Second, wanted: 7 * time.Second},
		"without a URL":     {left: 9 * time.Second, ownWrite: 7 * time.Second, wanted: 7 * time.Second},
		"three that elect":  {servers: []string{"nats://a:4222", "nats://b:4222", "nats://c:4222"}, left: 4 * time.Second, ownWrite: 7 * time.Second, wanted: 2500 * time.Millisecond},
		"two addresses":     {servers: []string{"nats://a:4222", "nats://b:4222"}, left: 4 * time.Second, wanted: 2500 * time.Millisecond},
		"one, no own write": {servers: []string{"nats://a:4222"}, left: 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o := nats.Options{Servers: c.servers, FlusherTimeout: c.ownWrite}
			if err := Liveness(&o); err != nil {
				t.Fatal(err)
			}
			if left := o.PingInterval * time.Duration(o.MaxPingsOut+1); left != c.left {
				t.Errorf("a server that does not answer is left within %s, want %s", left, c.left)
			}
			if o.FlusherTimeout != c.wanted || !o.ReconnectOnFlusherError {
				t.Errorf("a write waits %s, want %s; ends the connection: %v", o.FlusherTimeout, c.wanted, o.ReconnectOnFlusherError)
			}
		})
	}
}

// The client gives options the servers of the URL: those that take it as one alone would find a frozen one late.
func TestLivenessSeesTheURL(t *testing.T) {
	t.Parallel()
	var seen []string
	see := func(o *nats.Options) error { seen = o.Servers; return nil }
	_, err := nats.Connect("nats://a.invalid:1,nats://b.invalid:1", see, nats.SetCustomDialer(noDialer{}))
	if err == nil || strings.Join(seen, " ") != "nats://a.invalid:1 nats://b.invalid:1" {
		t.Errorf("an option sees the servers %q; %v", seen, err)
	}
}

type noDialer struct{}

func (noDialer) Dial(string, string) (net.Conn, error) { return nil, nats.ErrNoServers }
