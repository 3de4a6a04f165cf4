package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"time"
)

// The ports a server of Almanac takes when none is said: the usual ones of NATS and ClickHouse, so that their own
// tools find them without a flag.
const (
	DefaultNATSPort           = 4222
	DefaultClickHouseTCPPort  = 9000
	DefaultClickHouseHTTPPort = 8123
)

// portWait is how long a taken port is asked for again: a predecessor that was just killed lets go of its data
// directory a moment before its ports.
const portWait = 500 * time.Millisecond

// claimPort says which port to use on host: the one given, if it is free, or a free one when port is 0 or less.
// The port is let go again at once, since it is for another listener; who takes it in between makes that listener fail.
func claimPort(host string, port int) (int, error) {
	if port <= 0 {
		port = keptPort(host)
	}
	address := net.JoinHostPort(host, strconv.Itoa(port))
	var l net.Listener
	var err error
	patiently(context.Background(), portWait, func() bool {
		l, err = net.Listen("tcp", address)
		return !errors.Is(err, syscall.EADDRINUSE)
	})
	if err != nil {
		return 0, portError(host, port, err)
	}
	defer func() { _ = l.Close() }()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("listening on %s gave the address %s, which has no port", host, l.Addr())
	}
	return addr.Port, nil
}

// Ports for servers that are to get the same one again after a restart: below those that the kernel gives to outgoing
// connections (32768 and up on Linux, 49152 elsewhere), one of which might else sit on it while its server is away.
const (
	firstKept = 15_000
	lastKept  = 32_767
	// With half of the ports taken, all tries fail once in a million times. Then the kernel chooses.
	keptTries = 20
)

// keptPort returns a port that is free now, or 0, which is any, where none was found.
func keptPort(host string) int {
	for range keptTries {
		port := firstKept + rand.IntN(lastKept-firstKept+1)
		if l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			_ = l.Close()
			return port
		}
	}
	return 0
}

// portError turns the error of a failed listen into words for the user who started Almanac.
func portError(host string, port int, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return portTaken(host, port)
	}
	return fmt.Errorf("cannot listen on %s port %d: %w", host, port, err)
}

func portTaken(host string, port int) error {
	return fmt.Errorf("%w: something already listens on %s port %d: stop it, give another port, or use --ports auto",
		ErrPortInUse, host, port)
}

// requireLoopback refuses to open a server without TLS to the network.
func requireLoopback(part, host string) error {
	if isLoopback(host) {
		return nil
	}
	return fmt.Errorf("%w: the embedded %s was told to listen on %q, but it speaks without TLS: "+
		"use 127.0.0.1, or run a server of your own and give its URL", ErrNotLoopback, part, host)
}
