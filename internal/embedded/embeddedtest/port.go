package embeddedtest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// Ports that stay free until a server of a test listens: below those that the kernel gives to connections (32768 and up on Linux, 49152
// elsewhere), one of which sits else on a port between the look and the listen, or while a server restarts.
const (
	firstPort = 15_000
	lastPort  = 32_767
	portTries = 100
)

// given are the ports that tests of this process have.
var given sync.Map

// FreePort returns a port at which nothing listens, at no address of this machine, and which no other test of this process gets.
func FreePort(t testing.TB) int {
	t.Helper()
	for range portTries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			continue
		}
		_ = l.Close()
		return port
	}
	t.Fatal("no port is free")
	return 0
}

// FreeAddress returns an address of this machine at which nothing listens, with a port of FreePort.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", FreePort(t))
}
