package syslog

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/gateway/pool"
)

// kernelBytes is what the kernel may keep for a socket while the input is busy.
const kernelBytes = 4 << 20

// servePackets reads datagrams until ctx ends. One for which there is no room is
// dropped and counted: the sender cannot be held back.
func (in *Input) servePackets(ctx context.Context, p net.PacketConn, allows func(net.Addr) bool) error {
	counted := func() {}
	if u, ok := p.(*net.UDPConn); ok {
		_ = u.SetReadBuffer(kernelBytes) // the kernel takes a smaller one without an error; what it drops then is counted
		k := kernel{in: in, of: u}
		counted = k.count
		counting, end := context.WithCancel(ctx)
		defer end()
		go k.watch(counting)
	}
	stopped := context.AfterFunc(ctx, func() {
		counted()
		_ = p.Close()
	})
	defer stopped()
	decoder := NewDecoder()
	datagram := make([]byte, MaxLineBytes)
	for {
		n, from, err := p.ReadFrom(datagram)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			in.cfg.OnError(fmt.Errorf("syslog: reading at %s: %w", p.LocalAddr(), err))
			_ = backoff.Sleep(ctx, acceptPause)
			continue
		case !allows(from):
			in.stats.refused.Add(1)
			in.tell("not-allowed", 1)
			in.cfg.OnError(NotAllowed(from))
			continue
		case len(trim(datagram[:n])) == 0:
			continue
		}
		if !in.packets.offer(in.event(decoder, Frame{Line: datagram[:n]}, host(from))) {
			in.stats.dropped.Add(1)
			in.tell(pool.LostBuffer, 1)
		}
	}
}
