package producer

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/producer/spool"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// Producer logs events of one topic. It is safe for concurrent use. Make one
// per topic and process with Connect or New, and Close it at the end.
type Producer struct {
	cfg   Config
	topic schemas.Topic
	id    string // 16 random hex digits: whose seqs these are

	now    func() int64 // unix ns
	server serverClock

	lanes  []*lane
	buffer *buffer
	sender *sender
	report *reporter
	outer  counters // events that never came to a lane

	privacy    *privacy.Rules // nil: the topic has no such rules
	frameBytes int            // what an encoded frame may have on this connection
	builders   freeList[*frame.Builder]
	payloads   freeList[[]byte]
	unencoded  atomic.Int32  // closed frames that wait to be encoded
	order      atomic.Uint64 // counts closed frames, to find the oldest
	ids        schemas.IDSource
	laneByID   bool // the topic's lanes are cut by the events' ids
	once       bool // the topic has events once: a frame has an id at most schemas.MaxSameIDs times

	elects     func() bool  // there are several servers, which may be without a leader for a while
	spool      *spool.Spool // nil under every policy but Spool
	confirmed  atomic.Bool  // the registry has the topic as it is here
	replayed   atomic.Uint64
	unreplayed atomic.Uint64

	watch  removalWatch
	paused atomic.Bool           // nothing is sent before the watch had its answer
	gone   atomic.Pointer[error] // what every caller hears once the topic was removed

	closing  chan struct{} // closed when Close begins
	closed   chan struct{} // closed when it is done
	began    atomic.Bool
	closeErr error // set before closed is closed
}

// New starts a producer of cfg.Topic, or returns ErrUnknownTopic, on nc, which stays the caller's: Close
// does not close it. ctx bounds reading the topic's descriptor, no more.
func New(ctx context.Context, nc *nats.Conn, cfg Config) (*Producer, error) {
	cfg, err := cfg.declared()
	if err != nil {
		return nil, err
	}
	if cfg.Policy == Spool {
		cfg.Hooks = cfg.Hooks.oneByOne()
		s, err := openSpool(cfg)
		if err != nil {
			return nil, err
		}
		return newSpooling(ctx, nc, cfg, s)
	}
	topic, err := readTopic(ctx, nc, cfg.Topic)
	if err == nil {
		err = cfg.fitTopic(&topic)
	}
	if err != nil {
		return nil, err
	}
	p := start(cfg, topic, newNatsLink(nc))
	p.server.sample(ctx)
	return p, nil
}

// Log takes one event and goes on. It never fails, and waits only under the
// policy Block. It copies what it is given: the caller may reuse ev.Attrs. A
// zero Time means now, a zero ID gets a new one.
//
// The event is lost, counted and reported, when it breaks a limit, when the
// buffer is full, when it was dropped for a newer one (DropOldest), after
// Close, or when the process ends before it was stored.
func (p *Producer) Log(ev Event) {
	a, err := p.admit(&ev)
	if err != nil {
		p.dropNew(causeOf(err))
		return
	}
	if cause := p.makeSpace(a.size); cause != "" {
		p.dropNew(cause)
		return
	}
	if !p.add(&ev, a, waiter{}, false) {
		p.dropNew(CauseClosed)
	}
}

// Flush waits until every event accepted so far is stored. It returns an error
// with their number when some were given up instead, and one that wraps ctx's
// when ctx ends first: they stay buffered then. Under the policy Spool it waits
// for everything in the spool, of earlier producers too.
func (p *Producer) Flush(ctx context.Context) error {
	b := newBarrier()
	for _, l := range p.lanes {
		l.flush(b)
	}
	if p.spool != nil {
		p.sender.whenReplayed(b.add(0))
	}
	p.sender.wake()
	return b.wait(ctx)
}

// Close stops taking events, flushes until ctx ends, and stops. Events it could
// not flush are counted as drops of cause CauseClosed and returned as an error
// that wraps ErrNotFlushed; those whose frame had been sent may be stored all
// the same. Close may be called again: it returns what the first call did.
// Without a deadline of ctx it waits for a minute (closeWait). Under the
// policy Spool what is not stored by then goes to disk instead. There it waits no longer than
// the stream answers: once all that is not stored is on disk, or can go there because the stream
// is away, it returns an error that wraps ErrSpooled.
func (p *Producer) Close(ctx context.Context) error {
	if !p.began.CompareAndSwap(false, true) {
		select {
		case <-p.closed:
			return p.closeErr
		case <-ctx.Done():
			return fmt.Errorf("producer: still closing: %w", context.Cause(ctx))
		}
	}
	defer close(p.closed)
	p.closeErr = p.shutdown(ctx)
	return p.closeErr
}

// ID is the producer's name in frame headers, new with every process.
func (p *Producer) ID() string { return p.id }

// Topic returns the topic's descriptor as the producer goes by it.
func (p *Producer) Topic() schemas.Topic { return p.topic }

// closeGrace is how much longer than its context Close waits for the sender to
// give up what is left: it may sit in one write to a dead socket.
const closeGrace = time.Second

// spoolGrace is how much longer the sender may take to write the buffer to disk
// and sync it: 16 MiB on a disk that does nothing else at 2 MB/s.
const spoolGrace = 8 * time.Second

// closeWait bounds a Close whose context has no deadline: a restart of the stream is over by then.
const closeWait = time.Minute

func (p *Producer) shutdown(ctx context.Context) error {
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, closeWait)
		defer cancel()
	}
	p.report.tell()
	close(p.closing)
	for _, l := range p.lanes {
		l.shut()
	}
	err := p.flushOrSpool(ctx)
	close(p.sender.stop)
	grace := closeGrace
	if p.spool != nil {
		grace += spoolGrace
	}
	if !within(grace, p.sender.done) {
		// The sender gives its frames up as soon as the write returns.
		go func() { <-p.sender.done; p.sender.link.close() }()
		return fmt.Errorf("%w: %d events are buffered and the connection does not answer", ErrNotFlushed, p.Stats().Buffered)
	}
	p.sender.link.close()
	close(p.report.stop)
	within(closeGrace, p.report.done) // or Stderr is not read
	left := p.Stats().Spool
	if n := p.sender.abandoned; n > 0 {
		if err == nil && p.spool != nil { // it was to go to disk
			err = p.sender.spool.failed
		}
		lost := fmt.Errorf("%w: %d events", ErrNotFlushed, n)
		if err == nil {
			return lost
		}
		return fmt.Errorf("%w: %w", lost, err)
	}
	if left.Frames > 0 {
		return fmt.Errorf("%w: %d frames with %d events wait in %s for the next producer with this directory",
			ErrSpooled, left.Frames, left.Events, p.cfg.SpoolDir)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotFlushed, err)
	}
	return nil
}

// within waits for done, at most for d.
func within(d time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// start builds the producer around a link and starts its goroutines. The
// options come before them.
func start(cfg Config, topic schemas.Topic, link link, options ...func(*Producer)) *Producer {
	p := &Producer{
		cfg: cfg, topic: topic, id: newProducerID(),
		buffer:     newBuffer(cfg.BufferEvents, cfg.BufferBytes),
		frameBytes: min(schemas.MaxFrameBytes, link.maxPayload()-headerBytes),
		// As many as are ever in use at once, or growing new ones would cost more
		// than filling them: one open per lane, the closed that wait, the encoders'.
		builders: make(freeList[*frame.Builder], min(topic.Lanes, 16)+maxUnencoded+2*runtime.GOMAXPROCS(0)),
		payloads: make(freeList[[]byte], freePayloads),
		closing:  make(chan struct{}), closed: make(chan struct{}),
	}
	p.now = newClock().now
	if cfg.Now != nil {
		p.now = func() int64 { return cfg.Now().UnixNano() }
	}
	p.elects = func() bool { return false }
	p.server.now, p.server.woken = p.now, make(chan struct{}, 1)
	if n, ok := link.(*natsLink); ok {
		p.elects = n.elects
		p.server.ask = askTimeOf(n.nc)
		p.watch = removalWatch{ask: goneOf(n.nc, &p.topic), word: make(chan bool, 1)}
	}
	p.privacy = privacy.New(&topic, cfg.PrivacyKey)
	p.laneByID = topic.HasIdentity() && slices.Contains(topic.LaneBy, schemas.ColID)
	p.once = topic.HasOnce()
	p.lanes = make([]*lane, topic.Lanes)
	for i := range p.lanes {
		p.lanes[i] = &lane{p: p, number: i, id: p.id, index: i, window: newWindow(cfg.InFlight)}
	}
	p.confirmed.Store(true)
	for _, o := range options {
		o(p)
	}
	p.sender = newSender(p, link)
	p.report = newReporter(p)
	link.start(p.sender)
	go p.sender.run()
	go p.report.run()
	if p.server.ask != nil {
		go p.server.follow(p.closing)
	}
	if p.watch.ask != nil {
		go p.watchTopic()
	}
	return p
}

// freePayloads bounds the encoded buffers kept for reuse: at 30 to 100 KiB each
// they are 2 to 6 MiB, and one second of full load uses each many times.
const freePayloads = 64

// headerBytes is room for the frame's headers, the duplicate id and the
// subjects beside the payload. They come to about 400 bytes.
const headerBytes = 2 << 10

// freeList keeps up to its capacity of things for reuse.
type freeList[T any] chan T

func (l freeList[T]) get() (v T, ok bool) {
	select {
	case v = <-l:
		return v, true
	default:
		return v, false
	}
}

func (l freeList[T]) put(v T) {
	select {
	case l <- v:
	default:
	}
}
