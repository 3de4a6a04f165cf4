package syslog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
)

const (
	// handshakeWait bounds the handshake of TLS.
	handshakeWait = 10 * time.Second
	// acceptPause is how long the listener waits after an error that passes, such as too
	// many open files.
	acceptPause = 100 * time.Millisecond
)

// serveStreams accepts connections until ctx ends. What is read has until giving ends
// to be queued.
func (in *Input) serveStreams(ctx, giving context.Context, l net.Listener, allows func(net.Addr) bool) error {
	stopped := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stopped()
	var connections sync.WaitGroup
	defer connections.Wait()
	for {
		c, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil:
			in.cfg.OnError(fmt.Errorf("syslog: accepting a connection at %s: %w", l.Addr(), err))
			_ = backoff.Sleep(ctx, acceptPause)
		case !allows(c.RemoteAddr()):
			_ = c.Close()
			in.cfg.OnLimit("syslog connections", request.LimitNotAllowed)
			in.cfg.OnError(NotAllowed(c.RemoteAddr()))
		default:
			connections.Go(func() { in.serveStream(ctx, giving, c) })
		}
	}
}

// NotAllowed is a sender whose messages are not taken.
func NotAllowed(from net.Addr) error {
	return fmt.Errorf("syslog: nothing is taken from %s: syslog_allow does not have its network", host(from))
}

// serveStream reads one connection. While the queue is full it does not read, so the
// sender waits.
func (in *Input) serveStream(ctx, giving context.Context, c net.Conn) {
	defer func() { _ = c.Close() }()
	if t, ok := c.(*tls.Conn); ok {
		bounded, cancel := context.WithTimeout(ctx, handshakeWait)
		err := t.HandshakeContext(bounded)
		cancel()
		if err != nil {
			return // the client is told by TLS; there is no message to lose
		}
	}
	// What the kernel has is read to its end: the sender takes it for delivered.
	from := &source{c: c}
	stopped := context.AfterFunc(ctx, from.stop)
	defer stopped()
	framer, decoder, peer := NewFramer(from), NewDecoder(), host(c.RemoteAddr())
	framer.begins = from.begins
	for first := true; ; first = false {
		frame, err := framer.Next()
		if errors.Is(err, errUnfinished) {
			in.cfg.OnLimit("syslog connections", limitUnfinished)
			in.cfg.OnError(fmt.Errorf("syslog: the connection from %s is closed: %w; what came of the message is kept", peer, err))
		}
		if err != nil && len(frame.Line) == 0 {
			return
		}
		if first && fromBrowser(frame.Line) {
			in.cfg.OnError(fmt.Errorf("syslog: a connection from %s begins as a browser's, and is closed; nothing of it is taken", peer))
			return
		}
		ev := in.event(decoder, frame, peer)
		if err != nil {
			ev = cutOff(ev, frame, err)
		}
		if !in.streams.put(giving, ev) {
			in.lost(1, context.Cause(giving))
		}
		if err != nil {
			return
		}
	}
}

// cutOff is the event of a message whose end did not come.
func cutOff(ev schemas.Event, f Frame, err error) schemas.Event {
	why := "the connection ended within this message"
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		why += ": " + err.Error()
	}
	for i := range ev.Attrs {
		if ev.Attrs[i].Key == AttrError {
			ev.Attrs[i] = schemas.String(AttrError, why)
			return ev
		}
	}
	ev.Attrs = append(ev.Attrs, schemas.String(AttrError, why))
	return ev
}
