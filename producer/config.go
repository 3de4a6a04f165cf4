package producer

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/producer/spool"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// Policy is what Log does when the buffer is full.
type Policy uint8

const (
	// ByKind, the zero value, is what fits the topic: Block where nothing of its kind may be
	// dropped (meter, audit), else DropNewest.
	ByKind Policy = iota
	// DropNewest refuses the new event.
	DropNewest
	// DropOldest drops the oldest whole frame that was never sent and that no
	// Publish or Submit waits for; when there is none, the new event.
	DropOldest
	// Block waits for room until Close.
	Block
	// Spool keeps frames that cannot be sent on disk, in Config.SpoolDir, and
	// refuses the new event only when that has reached its bound too. What is in
	// the spool outlives the process: the next producer with the same directory
	// sends it.
	Spool
)

// String is the policy's name in configuration.
func (p Policy) String() string {
	switch p {
	case ByKind:
		return "by_kind"
	case DropNewest:
		return "drop_newest"
	case DropOldest:
		return "drop_oldest"
	case Block:
		return "block"
	case Spool:
		return "spool"
	}
	return fmt.Sprintf("policy(%d)", uint8(p))
}

// ParsePolicy reads a policy's name.
func ParsePolicy(s string) (Policy, error) {
	for p := DropNewest; p <= Spool; p++ {
		if p.String() == s {
			return p, nil
		}
	}
	return 0, fmt.Errorf("%w: policy %q, it must be %s, %s, %s or %s", ErrConfig, s, DropNewest, DropOldest, Block, Spool)
}

// Defaults of Config.
const (
	// DefaultBufferEvents is a second of a busy service, or twenty frames of
	// every lane at full load.
	DefaultBufferEvents = 100_000
	// DefaultBufferBytes keeps a producer at full load, scratch and garbage
	// included, below 64 MiB of memory.
	DefaultBufferBytes = 16 << 20
	// DefaultInFlightBytes is a tenth of a second at the rate a stream that
	// syncs every frame takes (72 to 116 MB/s). How much of it is used follows
	// the time answers take (budget.go).
	DefaultInFlightBytes = 8 << 20
	// DefaultAckTimeout is JetStream's own request timeout.
	DefaultAckTimeout = 5 * time.Second
)

// Config says what a producer logs and how much it may hold. Only Topic is
// required; a zero field means its default.
type Config struct {
	// Topic is the topic's name. It must have been declared.
	Topic string

	// Service fills Event.Service when that is empty. Default: none.
	Service string

	// BufferEvents bounds the events held in open, closed and unanswered
	// frames. Default DefaultBufferEvents; 1 to 16,777,215.
	BufferEvents int

	// BufferBytes bounds their bytes: uncompressed while a frame is open,
	// encoded afterwards. Default DefaultBufferBytes; at least 128 KiB, so that
	// the largest event fits. Memory in use is about twice as much, and 1 MiB
	// for each lane.
	BufferBytes int

	// Policy is what Log does when the buffer is full. Publish and Submit wait
	// for room under every policy. Default ByKind: DropNewest, or Block for a topic of
	// which nothing may be dropped.
	Policy Policy

	// SpoolDir is where the policy Spool keeps frames: a directory of this
	// producer's own, inside which each topic has one. Required by it, and only
	// allowed with it.
	SpoolDir string

	// SpoolBytes bounds the files of the spool. Default spool.DefaultBytes
	// (1 GiB); at least spool.MinBytes.
	SpoolBytes int64

	// SpoolSync is how long after it was written a frame in the spool is made
	// durable (fsync), at most: what a power failure may cost. The death of the
	// process costs nothing that was written. Default spool.DefaultSync (100 ms).
	SpoolSync time.Duration

	// PrivacyKey is the key of the topic's hash rules (schemas.PrivacyHash), the
	// same for every producer whose hashes shall compare equal. Required when the
	// topic has such a rule; at least schemas.MinPrivacyKeyBytes.
	PrivacyKey []byte

	// InFlight bounds the frames of one lane that are sent and not answered.
	// Default and maximum schemas.MaxInFlight, which is what a router can tell
	// from repetitions.
	// A frame that has to be sent again is stored after later ones that were in flight
	// with it; with 1 there are none, and a lane keeps its order (without a spool), at
	// one frame a round trip.
	InFlight int

	// InFlightBytes bounds their bytes over all lanes; a frame counts as 32 KiB at
	// least, and one is always allowed. Fewer are sent when answers take long. Default
	// DefaultInFlightBytes.
	InFlightBytes int

	// Linger is how long a frame waits for company. Default
	// schemas.FrameLinger; up to a minute. Negative: not at all. In a busy lane,
	// where each linger brings it two events that no caller waits for, a frame waits up
	// to sixteen times as long, at most 320 ms (80 by default under the policy Spool, which
	// bounds it by 250). It is closed when a caller comes to wait for it. While earlier
	// frames of its lane are unanswered it waits for those answers too, at most 250 ms
	// altogether: under load frames are full.
	Linger time.Duration

	// AckTimeout is how long an answer may take before the frame is sent again.
	// It doubles with each attempt, up to eightfold; where servers elect, not before
	// an election would be over. Default DefaultAckTimeout; at least 10 ms.
	AckTimeout time.Duration

	// Hooks tell the application what happens.
	Hooks Hooks

	// Stderr gets one line about dropped events, at most once a second and once
	// at Close. Default os.Stderr; io.Discard for silence.
	Stderr io.Writer

	// Now is the clock of events that have no time, of new ids, and of the
	// check that events are not too far ahead, which the NATS server's clock makes
	// too, once it is known. Default the system's.
	Now func() time.Time

	// NATS is further options for Connect: credentials, TLS, a name. They come
	// after Almanac's own and so win over them.
	NATS []nats.Option
}

// Hooks are called from the producer's goroutines, one at a time each. They
// must not wait, and must not call Publish, Submit, Flush or Close.
type Hooks struct {
	// OnDrop hears how many events were dropped, by cause, since its last call
	// for that cause; at most once a second and once at Close.
	OnDrop func(cause string, events uint64)
	// OnError hears errors the producer works around, such as a full stream or
	// a lost connection; at most once a second.
	OnError func(error)
}

// oneByOne is h with calls of OnError in turn: the connection has a goroutine
// of its own.
func (h Hooks) oneByOne() Hooks {
	var mu sync.Mutex
	f := h.OnError
	h.OnError = func(err error) {
		if f != nil {
			mu.Lock()
			defer mu.Unlock()
			f(err)
		}
	}
	return h
}

const (
	minBufferBytes = 128 << 10
	minAckTimeout  = 10 * time.Millisecond
	maxLinger      = time.Minute
)

// fitTopic decides what follows from the topic, and says what it needs that c does not have.
func (c *Config) fitTopic(t *schemas.Topic) error {
	if err := t.CheckEvents(); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	switch {
	case c.Policy == ByKind && t.Spec().Waits:
		c.Policy = Block
	case c.Policy == ByKind:
		c.Policy = DropNewest
	}
	if t.Spec().Waits && (c.Policy == DropNewest || c.Policy == DropOldest) {
		return fmt.Errorf("%w: Policy is %s and topic %q is of kind %s, of which nothing may be dropped: use %s or %s", ErrConfig, c.Policy, t.Name, t.Kind, Block, Spool)
	}
	if t.NeedsPrivacyKey() && len(c.PrivacyKey) == 0 {
		return fmt.Errorf("%w: %w: topic %q hashes fields and no key is given: set pii_key (ALMANAC_PII_KEY), in Go Config.PrivacyKey", ErrConfig, schemas.ErrPrivacyKey, t.Name)
	}
	return nil
}

// declared is c with its defaults filled in, checked.
func (c Config) declared() (Config, error) {
	if err := schemas.ValidateTopicName(c.Topic); err != nil {
		return c, err
	}
	c.BufferEvents = cmp.Or(c.BufferEvents, DefaultBufferEvents)
	c.BufferBytes = cmp.Or(c.BufferBytes, DefaultBufferBytes)
	c.InFlight = cmp.Or(c.InFlight, schemas.MaxInFlight)
	c.InFlightBytes = cmp.Or(c.InFlightBytes, DefaultInFlightBytes)
	c.Linger = cmp.Or(c.Linger, schemas.FrameLinger)
	c.AckTimeout = cmp.Or(c.AckTimeout, DefaultAckTimeout)
	if err := privacy.CheckKey(c.PrivacyKey); err != nil {
		return c, fmt.Errorf("%w: PrivacyKey: %w", ErrConfig, err)
	}
	if c.Stderr == nil {
		c.Stderr = os.Stderr
	}
	bad := func(format string, a ...any) (Config, error) {
		return c, fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, a...))
	}
	switch {
	case c.BufferEvents < 1 || c.BufferEvents > maxBufferEvents:
		return bad("BufferEvents is %d, it must be 1 to %d", c.BufferEvents, maxBufferEvents)
	case c.BufferBytes < minBufferBytes || c.BufferBytes > maxBufferBytes:
		return bad("BufferBytes is %d, it must be %d to %d", c.BufferBytes, minBufferBytes, int64(maxBufferBytes))
	case c.Policy > Spool:
		return bad("Policy is %s, it must be %s, %s, %s or %s", c.Policy, DropNewest, DropOldest, Block, Spool)
	case c.Policy == Spool && c.SpoolDir == "":
		return bad("the policy %s needs SpoolDir, a directory", Spool)
	case c.Policy != Spool && c.SpoolDir != "":
		return bad("SpoolDir is %q and Policy is %s: only %s uses it", c.SpoolDir, c.Policy, Spool)
	case c.SpoolBytes != 0 && c.SpoolBytes < spool.MinBytes:
		return bad("SpoolBytes is %d, it must be %d or more", c.SpoolBytes, spool.MinBytes)
	case c.SpoolSync < 0 || c.SpoolSync > maxLinger:
		return bad("SpoolSync is %s, it must be above 0 and at most %s", c.SpoolSync, maxLinger)
	case c.InFlight < 1 || c.InFlight > schemas.MaxInFlight:
		return bad("InFlight is %d, it must be 1 to %d", c.InFlight, schemas.MaxInFlight)
	case c.InFlightBytes < 1:
		return bad("InFlightBytes is %d, it must be 1 or more", c.InFlightBytes)
	case c.Linger > maxLinger:
		return bad("Linger is %s, it must be at most %s", c.Linger, maxLinger)
	case c.AckTimeout < minAckTimeout:
		return bad("AckTimeout is %s, it must be at least %s", c.AckTimeout, minAckTimeout)
	}
	return c, nil
}
