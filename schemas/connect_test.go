package schemas

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
)

// A server that refuses the account once, as one does that reads its configuration again, is asked once more. One that refuses it for good is
// asked no third time.
func TestConnectAsksOnceMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ refuses, asked int32 }{
		"takes it":     {0, 1},
		"refuses once": {1, 2},
		"refuses":      {9, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			var asked atomic.Int32
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					n := asked.Add(1)
					_, _ = fmt.Fprint(conn, `INFO {"server_id":"x","version":"2.15.0","max_payload":1048576}`+"\r\n")
					if n <= c.refuses {
						_, _ = fmt.Fprint(conn, "-ERR 'Authorization Violation'\r\n")
					} else {
						_, _ = fmt.Fprint(conn, "PONG\r\n")
					}
					defer func() { _ = conn.Close() }()
				}
			}()
			nc, err := Connect("nats://" + l.Addr().String())
			if nc != nil {
				nc.Close()
			}
			if refused := c.refuses >= c.asked; errors.Is(err, nats.ErrAuthorization) != refused || !refused && err != nil {
				t.Errorf("%d refusals give %v", c.refuses, err)
			}
			if n := asked.Load(); n != c.asked {
				t.Errorf("asked %d times, want %d", n, c.asked)
			}
		})
	}
}
