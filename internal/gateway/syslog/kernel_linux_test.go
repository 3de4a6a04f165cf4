package syslog

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/pool/pooltest"
)

// What the kernel drops of UDP is counted, at once and again, and the reason names its buffer; with what is stored it is all that was sent.
func TestWhatTheKernelDropsIsCounted(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	lost := map[string]int{}
	env := pooltest.Start(t, func(c *pool.Config) {
		c.Hooks.Refused = func(in pool.Input, reason string, n int) {
			mu.Lock()
			defer mu.Unlock()
			lost[reason] += n
		}
	}, sys())
	packets, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if err := packets.SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	c := dial(t, "udp", packets.LocalAddr().String())
	const sent = 500
	for n := range sent { // nothing reads yet
		write(t, c, fmt.Sprintf("<14>1 - host app - - - %01000d", n))
	}
	var said []string
	in := New(Config{Pool: env.Pool, Topic: "sys", OnError: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(err.Error(), "the kernel dropped") { // a busy server may have messages wait too
			said = append(said, err.Error())
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- in.Run(ctx, Listeners{Packets: []net.PacketConn{packets}}, time.Minute) }()
	eventually(t, time.Minute, "all that was sent is stored or counted", func() bool {
		n := len(env.Events("sys"))
		mu.Lock()
		defer mu.Unlock()
		return lost[pool.LostKernel] > 0 && lost[pool.LostKernel]+n >= sent
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := len(env.Events("sys")); n+lost[pool.LostKernel] != sent || in.Stats().Dropped != uint64(lost[pool.LostKernel]) || len(lost) != 1 {
		t.Errorf("%d are stored, lost are %v, %+v", n, lost, in.Stats())
	}
	if len(said) != 1 || !strings.Contains(said[0], fmt.Sprintf("dropped %d datagrams for %s", lost[pool.LostKernel], packets.LocalAddr())) {
		t.Errorf("said %q", said)
	}
}
