package gateway

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/pool"
	"github.com/almanac-events/almanac/internal/gateway/request"
)

const (
	// idleLook is how often a listener that has no room looks for a connection that is idle.
	idleLook = time.Second
	// idleRest is how long a connection that is ended for being idle is still read: what is on its way is taken.
	idleRest = 250 * time.Millisecond
)

// Bound bounds the connections of a listener.
type Bound struct {
	// What names them for counts, in the plural.
	What string
	// Connections may be open at once; more wait, in the kernel's queue but for one. Of an address other than this machine's a quarter may be, and
	// more are closed.
	Connections int
	// Idle is after how long in which nothing came a connection may be ended where another has no room; 0: it may be idle without end.
	Idle time.Duration
	// Allows reports whether connections of an address are taken at all; nil: all are. One that is not ends no other.
	Allows func(from net.Addr) bool
	// OnLimit hears of connections that are closed for a bound; it may be nil.
	OnLimit request.OnLimit
}

// Why connections are closed, beside request.LimitShare.
const limitIdle = "idle"

// limitListener is a listener with a Bound.
type limitListener struct {
	net.Listener
	bound Bound
	slots chan struct{}
	done  chan struct{}
	once  sync.Once
	each  int

	mu   sync.Mutex
	by   map[string]int            // connections of each address that is bounded
	open map[*limitedConn]struct{} // those that may be ended for being idle
}

// Bounded returns a listener that has a bound.
func Bounded(l net.Listener, b Bound) net.Listener {
	if b.OnLimit == nil {
		b.OnLimit = func(string, string) {}
	}
	return &limitListener{
		Listener: l, bound: b, slots: make(chan struct{}, b.Connections), done: make(chan struct{}),
		each: max(b.Connections/4, 1), by: map[string]int{}, open: map[*limitedConn]struct{}{},
	}
}

// Accept waits for a slot and then for a connection. It closes those of an address that
// has as many as one may, and none that is idle.
//
// Where connections may be ended for being idle, it is the other way round: one that came waits for a slot, for what is idle is
// ended only where another wants its slot.
func (l *limitListener) Accept() (net.Conn, error) {
	first := l.bound.Idle == 0
	if first && !l.slot() {
		return nil, net.ErrClosed
	}
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			if first {
				<-l.slots
			}
			return nil, err
		}
		if l.bound.Allows != nil && !l.bound.Allows(c.RemoteAddr()) {
			_ = c.Close()
			l.bound.OnLimit(l.bound.What, request.LimitNotAllowed)
			continue
		}
		one := &limitedConn{Conn: c, of: l, from: pool.PeerOf(c.RemoteAddr().String())}
		if !l.enter(one) {
			_ = c.Close()
			l.bound.OnLimit(l.bound.What, request.LimitShare)
			continue
		}
		if !first && !l.slot() {
			_ = c.Close()
			return nil, net.ErrClosed
		}
		return one, nil
	}
}

// slot waits for a slot, and has what is idle give one where that may be. It is false once the listener is closed.
func (l *limitListener) slot() bool {
	var look <-chan time.Time
	if l.bound.Idle > 0 {
		t := time.NewTicker(idleLook)
		defer t.Stop()
		look = t.C
	}
	for {
		select {
		case l.slots <- struct{}{}:
			return true
		case <-l.done:
			return false
		case <-look:
			l.mu.Lock()
			l.endIdle(func(*limitedConn) bool { return true })
			l.mu.Unlock()
		}
	}
}

// enter counts a connection of its address, unless that has as many as it may.
func (l *limitListener) enter(c *limitedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.from != "" && l.by[c.from] >= l.each && !l.endIdle(func(o *limitedConn) bool { return o.from == c.from }) {
		return false
	}
	if c.from != "" {
		l.by[c.from]++
	}
	if l.bound.Idle > 0 {
		l.open[c] = struct{}{}
	}
	return true
}

// endIdle ends the connection that is idle longest of those which may be ended, and reports whether there is one. Its address may have
// another from then on. mu is held.
func (l *limitListener) endIdle(may func(*limitedConn) bool) bool {
	var idlest *limitedConn
	since := time.Now().Add(-l.bound.Idle).UnixNano()
	for c := range l.open {
		if at := c.waits.Load(); at != 0 && at <= since && may(c) {
			idlest, since = c, at
		}
	}
	if idlest == nil {
		return false
	}
	l.left(idlest)
	idlest.end()
	l.bound.OnLimit(l.bound.What, limitIdle)
	return true
}

// left forgets a connection, once. mu is held.
func (l *limitListener) left(c *limitedConn) {
	delete(l.open, c)
	if c.from == "" {
		return
	}
	if l.by[c.from]--; l.by[c.from] == 0 {
		delete(l.by, c.from)
	}
	c.from = ""
}

// Close ends Accept too.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// limitedConn is a connection of a limitListener.
type limitedConn struct {
	net.Conn
	of   *limitListener
	once sync.Once
	from string // of.mu: the address that it counts for; "" for none
	// waits is since when a read waits for the client, in unix ns; 0 while none does, as where its reader is busy.
	waits atomic.Int64

	mu   sync.Mutex
	ends time.Time // when it is read no longer; zero: it may idle
}

// Read implements io.Reader.
func (c *limitedConn) Read(b []byte) (int, error) {
	if c.of.bound.Idle > 0 {
		c.waits.Store(time.Now().UnixNano())
		defer c.waits.Store(0)
	}
	return c.Conn.Read(b)
}

// end lets reads end soon.
func (c *limitedConn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = time.Now().Add(idleRest)
	_ = c.Conn.SetReadDeadline(c.ends)
}

// SetReadDeadline implements net.Conn. It does not go beyond the end of one that is ended.
func (c *limitedConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ends.IsZero() && (t.IsZero() || t.After(c.ends)) {
		t = c.ends
	}
	return c.Conn.SetReadDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *limitedConn) SetDeadline(t time.Time) error {
	if err := c.SetReadDeadline(t); err != nil {
		return err
	}
	return c.SetWriteDeadline(t)
}

// CloseWrite ends the answer, and takes what the client is still sending. net/http calls it where it
// refuses a request that it did not read to its end. Closed with bytes unread, the connection
// would be reset, and the client might never see why.
func (c *limitedConn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	if err := half.CloseWrite(); err != nil {
		return err
	}
	_ = c.SetReadDeadline(time.Now().Add(leaveWait))
	_, _ = io.CopyN(io.Discard, c.Conn, leaveBytes) // ends with the client, or at a bound
	return nil
}

// Close gives the slot back.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.of.mu.Lock()
		c.of.left(c)
		c.of.mu.Unlock()
		<-c.of.slots
	})
	return err
}
