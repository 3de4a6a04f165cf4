package faults

import (
	"errors"
	"net"
	"sync"
	"time"
)

// Proxy is a link between two parts: it listens where one of them connects to, and passes bytes on to the other.
type Proxy struct {
	to string
	l  net.Listener
	wg sync.WaitGroup

	mu     sync.Mutex
	conns  map[*link]bool
	closed bool
	// What happens on the link now.
	cut   bool          // nothing connects
	stall bool          // nothing moves; it moves on when healed
	delay time.Duration // each way
	late  time.Duration // from the server to the client, besides
	rate  int           // bytes a second each way; 0: all
	fuse  *fuse
	short *fuse  // as fuse, from the server to the client
	reply []byte // said to every connection instead of what the server would say
}

// fuse burns while bytes go one way, and then does something.
type fuse struct {
	left   int
	then   func()
	freeze bool // that connection stands still from then on, and none is cut
}

// link is one connection and its other half.
type link struct {
	p              *Proxy
	client, server net.Conn
	done           chan struct{}
	once           sync.Once
	deaf           bool // half-open: read and forgotten; under p.mu
	frozen         bool // stands still, client to server; under p.mu
}

// NewProxy listens on loopback for connections to an address.
func NewProxy(to string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{to: to, l: l, conns: map[*link]bool{}}
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is where to connect to.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

// Close ends the link for good.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	_ = p.l.Close()
	p.reset(func(*link) bool { return true })
	p.wg.Wait()
}

// Cut closes every connection, and those that come, until Heal.
func (p *Proxy) Cut() {
	p.mu.Lock()
	p.cut = true
	p.mu.Unlock()
	p.Reset()
}

// Reset closes every connection once.
func (p *Proxy) Reset() { p.reset(func(*link) bool { return true }) }

// Blackhole lets nothing through until Heal, and closes nothing.
func (p *Proxy) Blackhole() { p.set(func() { p.stall = true }) }

// HalfOpen makes the server vanish from the present connections without a word: what is sent on them is forgotten, and
// nothing answers. New ones work.
func (p *Proxy) HalfOpen() {
	p.set(func() {
		for l := range p.conns {
			l.deaf = true
		}
	})
}

// Slow delays every byte, each way, and passes at most so many a second.
func (p *Proxy) Slow(delay time.Duration, rate int) { p.set(func() { p.delay, p.rate = delay, rate }) }

// Late delays what the server says, and not what the client says.
func (p *Proxy) Late(delay time.Duration) { p.set(func() { p.late = delay }) }

// Truncate closes every connection, in the middle of whatever it is, after n more bytes from server to client.
func (p *Proxy) Truncate(n int) { p.set(func() { p.short = &fuse{left: n} }) }

// CutAfter closes every connection, in the middle of whatever it is, after n more bytes from client to server; then is
// called just before, and may be nil.
func (p *Proxy) CutAfter(n int, then func()) { p.set(func() { p.fuse = &fuse{left: n, then: then} }) }

// FreezeAfter lets the connection that carries them stand still after n more bytes from client to server, until Heal; then
// is called in that instant.
func (p *Proxy) FreezeAfter(n int, then func()) {
	p.set(func() { p.fuse = &fuse{left: n, then: then, freeze: true} })
}

// Answer closes every connection, and gives each that comes a reply to the first it says, or to nothing, and closes it,
// until Heal.
func (p *Proxy) Answer(reply []byte) {
	p.set(func() { p.reply = reply })
	p.Reset()
}

// Heal ends what is wrong with the link. Half-open connections stay deaf, as in life.
func (p *Proxy) Heal() {
	p.set(func() {
		p.cut, p.stall, p.delay, p.late, p.rate, p.fuse, p.short, p.reply = false, false, 0, 0, 0, nil, nil, nil
		for l := range p.conns {
			l.frozen = false
		}
	})
}

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *Proxy) reset(which func(*link) bool) {
	p.mu.Lock()
	var all []*link
	for l := range p.conns {
		if which(l) {
			all = append(all, l)
		}
	}
	p.mu.Unlock()
	for _, l := range all {
		l.close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		p.mu.Lock()
		refuse, reply := p.cut || p.closed, p.reply
		p.mu.Unlock()
		if refuse {
			hardClose(client)
			continue
		}
		if reply != nil {
			p.wg.Go(func() { answer(client, reply) })
			continue
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

func (p *Proxy) serve(client net.Conn) {
	server, err := net.DialTimeout("tcp", p.to, time.Second)
	if err != nil {
		hardClose(client)
		return
	}
	l := &link{p: p, client: client, server: server, done: make(chan struct{})}
	p.mu.Lock()
	p.conns[l] = true
	refuse := p.cut || p.closed
	p.mu.Unlock()
	if refuse {
		l.close()
	}
	var wg sync.WaitGroup
	wg.Go(func() { l.pass(client, server, true) })
	wg.Go(func() { l.pass(server, client, false) })
	wg.Wait()
	p.mu.Lock()
	delete(p.conns, l)
	p.mu.Unlock()
}

// answerTime is how long an answered client may be silent before, and go on talking after its reply.
const answerTime = 300 * time.Millisecond

func answer(client net.Conn, reply []byte) {
	_ = client.SetDeadline(time.Now().Add(answerTime))
	buf := make([]byte, 64<<10)
	_, _ = client.Read(buf)
	_ = client.SetDeadline(time.Now().Add(answerTime))
	_, _ = client.Write(reply)
	if tcp, ok := client.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	for { // a body unread would reset the connection, and the reply with it
		if _, err := client.Read(buf); err != nil {
			break
		}
	}
	_ = client.Close()
}

func (l *link) close() {
	l.once.Do(func() { close(l.done) })
	hardClose(l.client)
	hardClose(l.server)
}

// hardClose resets the connection: the other side finds out at once, and bytes under way are lost.
func hardClose(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Close()
}
