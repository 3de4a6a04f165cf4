package fronts

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Writer writes records of one front. It is safe for concurrent use; writes of all its
// callers are committed in groups.
type Writer struct {
	js     jetstream.JetStream
	stream string
	cfg    Config
	// replicated: a server that led the stream until it was paused may answer beside the one that
	// leads it now, and refuse what that one stores. Copies may be given while the writer runs: each look at the space sees them.
	replicated atomic.Bool
	// alone: one server has the stream, and its direct gets are the leader's word.
	alone atomic.Bool

	inFlight *semaphore.Weighted // bytes of the writes that wait or are under way
	rounds   chan struct{}       // groups under way
	whole    chan struct{}       // batches of PutAll under way
	had      atomic.Uint64       // the highest sequence that the stream is known to have had
	clock    streams.Clock
	space    *space

	mu      sync.Mutex
	waiting []*write
	leading bool // a goroutine takes groups from waiting
}

// Config is how a Writer writes.
type Config struct {
	// Timeout bounds one write with all its repetitions, and then as long the look that finds out what
	// became of it. Default 10 s. It must be below the cleaner's settle.
	Timeout time.Duration
	// Single is how many waiting writes still go one by one. Default 16; negative: all.
	Single int
	// Answer is how long a write waits for its first answer before it is read back; each
	// further wait is twice as long. Most: 5 s, which is the default; streams.BatchWait where that is shorter.
	Answer time.Duration
	// Local is the machine's clock in tests. Now does not go by it. Default time.Now.
	Local func() time.Time
}

// Record is a key's new record, before it is written.
type Record struct {
	Subject string
	Header  nats.Header
	Data    []byte
	// Expect is the sequence of the key's last message; 0: there is none.
	Expect uint64
	// For says how full the write may make the front.
	For Purpose
}

// Open returns a writer of a stream that schemas.Streams declares.
func Open(ctx context.Context, js jetstream.JetStream, stream string, cfg Config) (*Writer, error) {
	info, err := streams.Info(ctx, js, stream)
	if err != nil {
		return nil, fmt.Errorf("fronts: stream %s: %w", stream, err)
	}
	cfg.Timeout, cfg.Single = cmp.Or(cfg.Timeout, 10*time.Second), cmp.Or(cfg.Single, singleWrites)
	cfg.Answer = min(cmp.Or(cfg.Answer, streams.BatchWait(js.Conn())), maxAnswer)
	if cfg.Single < 0 {
		cfg.Single = groupWrites
	}
	w := &Writer{js: js, stream: stream, cfg: cfg, inFlight: newInFlight(), rounds: make(chan struct{}, maxRounds), whole: make(chan struct{}, maxRounds)}
	w.clock.Local = cfg.Local
	w.saw(info)
	w.space = newSpace(func(ctx context.Context) (Use, error) {
		info, err := streams.Info(ctx, js, stream)
		if err != nil {
			return Use{}, err
		}
		w.saw(info)
		return useOf(info), nil
	})
	return w, nil
}

// saw takes what the stream's leader says of it.
func (w *Writer) saw(info *jetstream.StreamInfo) {
	w.replicated.Store(info.Config.Replicas > 1)
	w.alone.Store(streams.Alone(w.js.Conn(), info))
	w.Had(info.State.LastSeq)
}

// Now returns the time of a change, unix ns: that of the NATS server, whatever the machine's clock says. A record is
// acknowledged by its sequence, and would be stored under a month that is wrong for good.
func (w *Writer) Now(ctx context.Context) (int64, error) {
	now, err := w.clock.Now(ctx, streams.TimeOf(w.js, w.stream))
	if err != nil {
		return 0, fmt.Errorf("fronts: %w", err)
	}
	return now, nil
}

func useOf(info *jetstream.StreamInfo) Use {
	return Use{Stream: info.Config.Name, Keys: info.State.NumSubjects, Bytes: info.State.Bytes, Limit: info.Config.MaxBytes}
}

// Use returns how full the front is, as its leader said a second ago at most.
func (w *Writer) Use(ctx context.Context) (Use, error) { return w.space.use(ctx) }

// Stream returns the name of the front's stream.
func (w *Writer) Stream() string { return w.stream }

// Had tells the writer a sequence that the stream has had, as its leader said. What is written later
// gets a higher one, so what became of it is found out although the cleaner replaced what was
// there. A writer that creates without a look gets it from here alone.
func (w *Writer) Had(seq uint64) {
	for was := w.had.Load(); seq > was && !w.had.CompareAndSwap(was, seq); was = w.had.Load() {
	}
}

// Alone reports whether one server alone has the stream, which is the one of the connection.
func (w *Writer) Alone() bool { return w.alone.Load() && !schemas.Elects(w.js.Conn()) }

// Last returns a key's last message, by the stream's leader; ErrNotFound without one.
func (w *Writer) Last(ctx context.Context, subject string) (*streams.Message, error) {
	read := streams.DecideLast
	if w.Alone() {
		read = streams.DecideLastAlone
	}
	msg, err := read(ctx, w.js, w.stream, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, subject)
	}
	if err == nil {
		w.Had(msg.Sequence)
	}
	return msg, err
}

// LastOf calls f with the last message of each key that has one.
func (w *Writer) LastOf(ctx context.Context, subjects []string, f func(*streams.Message) error) error {
	return streams.LatestOf(ctx, w.js, w.stream, subjects, f)
}

// Put writes a record and returns its sequence. ErrConflict, ErrFull, ErrTooLarge and ErrCut mean
// that nothing was written, ErrUnknown that it may have been.
func (w *Writer) Put(ctx context.Context, r Record) (seq uint64, err error) {
	write, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	msg, nonce := message(&r), newNonce()
	msg.Header.Set(schemas.HeaderNonce, nonce)
	land, err := w.enter(write, r.For, msg)
	if err != nil {
		return 0, err
	}
	defer land()
	f := []fate{{subject: r.Subject, expect: r.Expect, nonce: nonce, had: w.had.Load()}}
	return w.resolve(ctx, write, f, func(wait time.Duration) (uint64, error) { return w.grouped(write, msg, wait) })
}

// PutAll writes records of different keys, all or none, in one atomic batch of their own,
// and returns the sequence of the first; the others follow it without a gap. Errors are as
// of Put. A few batches are under way at once, the others wait.
func (w *Writer) PutAll(ctx context.Context, rs []Record) (first uint64, err error) {
	if len(rs) == 1 {
		return w.Put(ctx, rs[0])
	}
	if len(rs) == 0 || len(rs) > MaxBatch {
		return 0, fmt.Errorf("%w: a batch of %d records, it must have 1 to %d", schemas.ErrRequest, len(rs), MaxBatch)
	}
	write, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
	defer cancel()
	nonce, had := newNonce(), w.had.Load()
	msgs, fates, purpose := make([]*nats.Msg, len(rs)), make([]fate, len(rs)), End
	for i := range rs {
		purpose = min(purpose, rs[i].For)
		msgs[i] = message(&rs[i])
		msgs[i].Header.Set(schemas.HeaderNonce, nonce)
		fates[i] = fate{subject: rs[i].Subject, expect: rs[i].Expect, nonce: nonce, behind: uint64(i), had: had}
	}
	land, err := w.enter(write, purpose, msgs...)
	if err != nil {
		return 0, err
	}
	defer land()
	select {
	case w.whole <- struct{}{}:
	case <-write.Done():
		return 0, fmt.Errorf("fronts: %s: %w", rs[0].Subject, errors.Join(errNotSent, context.Cause(write)))
	}
	defer func() { <-w.whole }()
	return w.resolve(ctx, write, fates, func(wait time.Duration) (uint64, error) {
		last, err := w.batch(write, msgs, wait)
		return last - uint64(len(msgs)-1), err
	})
}

// resolve sends a write until its outcome is known, and returns the sequence of its first
// record. Its records are stored all or none, so any of them tells. It is sent until write ends; the
// look at what became of it has a time of its own, so that an election in the middle leaves nothing unknown.
func (w *Writer) resolve(ctx, write context.Context, f []fate, send func(wait time.Duration) (uint64, error)) (uint64, error) {
	unsure := false
	for wait := w.cfg.Answer; ; wait = min(2*wait, maxAnswer) {
		seq, err := send(wait)
		switch {
		case err == nil:
			w.Had(seq)
			return seq, nil
		case !unsure && errors.Is(err, errNotSent):
			return 0, fmt.Errorf("fronts: %s: %w", f[0].subject, err)
		case !unsure && streams.Incomplete(err):
			if backoff.Sleep(write, lookPause) != nil {
				return 0, fmt.Errorf("fronts: %s: %w: %w", f[0].subject, ErrCut, errors.Join(err, context.Cause(write)))
			}
			continue
		case !unsure && refused(err) && !w.replicated.Load():
			return 0, refusal(f[0].subject, err)
		}
		looking, cancel := context.WithTimeout(ctx, w.cfg.Timeout)
		outcome, found, look := w.lookAll(looking, f, wait)
		for began := time.Now(); w.replicated.Load() && streams.LostRace(err) && look == nil && outcome == absent && time.Since(began) < overlap; {
			if look = backoff.Sleep(looking, lookPause); look == nil {
				outcome, found, look = w.lookAll(looking, f, wait)
			}
		}
		cancel()
		switch {
		case look != nil:
			return 0, fmt.Errorf("fronts: %s: %w: %w", f[0].subject, ErrUnknown, look)
		case outcome == mine:
			return found, nil
		case outcome == another:
			return 0, fmt.Errorf("%w: %s", ErrConflict, f[0].subject)
		case !unsure && refused(err):
			return 0, refusal(f[0].subject, err)
		case outcome == blurred, streams.LostRace(err) && !w.replicated.Load():
			return 0, fmt.Errorf("fronts: %s: %w: the cleaner was there meanwhile", f[0].subject, ErrUnknown)
		case refused(err) && !streams.Incomplete(err) && !w.replicated.Load():
			return 0, refusal(f[0].subject, err)
		case write.Err() != nil:
			return 0, fmt.Errorf("fronts: %s: %w: %w", f[0].subject, ErrUnknown, context.Cause(write))
		}
		unsure = true // it may still be on its way: the same write, which can be stored once, finds out
	}
}

// enter waits until there is room for messages, and refuses them with ErrFull where there is none.
func (w *Writer) enter(ctx context.Context, p Purpose, msgs ...*nats.Msg) (land func(), err error) {
	n := int64(0)
	for _, m := range msgs {
		n += StoredBytes(m.Subject, m.Header, len(m.Data))
	}
	land, err = w.space.enter(ctx, p, n)
	if err != nil && !errors.Is(err, ErrFull) {
		err = errors.Join(errNotSent, err)
	}
	if err != nil {
		return nil, fmt.Errorf("fronts: %s: %w", msgs[0].Subject, err)
	}
	return land, nil
}

// StoredBytes returns what a message takes in its stream. What JetStream adds is 34 bytes, and 12 for headers.
func StoredBytes(subject string, h nats.Header, payload int) int64 {
	n := 34 + 12 + len(subject) + payload
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(v) + 4
		}
	}
	return int64(n)
}

// message makes a message of a record, whose header it copies.
func message(r *Record) *nats.Msg {
	msg := nats.NewMsg(r.Subject)
	for k, v := range r.Header {
		msg.Header[k] = v
	}
	msg.Data = r.Data
	msg.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(r.Expect, 10))
	return msg
}

func newNonce() string {
	n := rand.Uint64()
	b := []byte{byte(n >> 56), byte(n >> 48), byte(n >> 40), byte(n >> 32), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
	return hex.EncodeToString(b)
}
