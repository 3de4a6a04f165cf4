package faults

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Corrupter publishes what should never have been published, and remembers what was acknowledged: each such message must
// become exactly one dead letter, whole.
type Corrupter struct {
	nc *nats.Conn

	mu     sync.Mutex
	n      int
	sent   map[[32]byte]*damaged // by the digest of the payload
	echoes int
}

// damaged is a message as it was published.
type damaged struct {
	what  string
	acked bool // otherwise it is unknown
}

// Damage takes one message from EVENTS, damages a copy and publishes that under a name of its own. An unknown outcome is
// tried again under the same message id until it is known.
func (v *Corrupter) Damage(ctx context.Context, rnd *rand.Rand) (string, error) {
	msg, err := v.recent(ctx)
	if err != nil {
		return "", err
	}
	v.mu.Lock()
	v.n++
	n := v.n
	v.mu.Unlock()
	bad := nats.NewMsg(msg.Subject)
	for k, vals := range msg.Header {
		if !strings.HasPrefix(k, "Nats-") {
			bad.Header[k] = vals
		}
	}
	bad.Header.Set("Almanac-Producer", "vandal")
	bad.Header.Set("Almanac-Seq", strconv.Itoa(n))
	bad.Data = append([]byte(nil), msg.Data...)
	what := damage(rnd, bad)
	// Two damages must never look alike.
	bad.Data = append(bad.Data, fmt.Sprintf("vandal %d", n)...)
	return what, v.remembered(ctx, bad, what, fmt.Sprintf("vandal-%d", n))
}

// remembered publishes what must become a dead letter.
func (v *Corrupter) remembered(ctx context.Context, bad *nats.Msg, what, id string) error {
	d := &damaged{what: what}
	v.mu.Lock()
	if v.sent == nil {
		v.sent = map[[32]byte]*damaged{}
	}
	v.sent[sha256.Sum256(bad.Data)] = d
	v.mu.Unlock()
	err := v.publish(ctx, bad, id)
	v.mu.Lock()
	d.acked = err == nil
	v.mu.Unlock()
	return err
}

// damage does one of several things to a message.
func damage(rnd *rand.Rand, m *nats.Msg) string {
	switch rnd.IntN(8) {
	case 0:
		if n := len(m.Data); n > 0 {
			m.Data[rnd.IntN(n)] ^= 1 << rnd.IntN(8)
		}
		return "flipped a bit"
	case 1:
		m.Data = m.Data[:rnd.IntN(len(m.Data)+1)]
		return "truncated"
	case 2:
		m.Header.Set("Almanac-Rows", "7654321")
		return "lied about its rows"
	case 3:
		m.Data = nil
		return "emptied"
	case 5: // what only the server may say
		m.Header.Set("Almanac-Rows", "7654321")
		m.Header.Set("Nats-Sequence", "x")
		m.Header.Set("Nats-Stream", "OTHER")
		m.Header.Set("Nats-Time-Stamp", "never")
		m.Header.Set("Nats-Num-Pending", "0")
		m.Header.Set("Status", "404")
		return "spoke as the server"
	case 6:
		m.Subject = "events.a\x01b\x1b[2J.2026-11.0"
		return "a subject of no topic"
	case 4:
		m.Header = nats.Header{}
		m.Data = []byte(`{"message": "not an object`)
		return "broken JSON"
	}
	for k := range m.Header {
		if strings.HasPrefix(k, "Almanac-M") {
			m.Header.Set(k, "yesterday")
		}
	}
	return "headers that are not numbers"
}

// Echo publishes a copy of a message of EVENTS again, as a producer does that never heard its answer and comes back after
// the duplicate window: the router has to know it.
func (v *Corrupter) Echo(ctx context.Context) error {
	msg, err := v.recent(ctx)
	if err != nil || msg.Header.Get("Almanac-Producer") == "vandal" || msg.Header.Get("Almanac-Producer") == "" {
		return err
	}
	again := nats.NewMsg(msg.Subject)
	for k, vals := range msg.Header {
		if !strings.HasPrefix(k, "Nats-") {
			again.Header[k] = vals
		}
	}
	again.Header.Set("Fault-Echo", "1")
	again.Data = msg.Data
	v.mu.Lock()
	v.echoes++
	n := v.echoes
	v.mu.Unlock()
	return v.publish(ctx, again, fmt.Sprintf("echo-%d", n))
}

// recent is the newest message of EVENTS.
func (v *Corrupter) recent(ctx context.Context) (*jetstream.RawStreamMsg, error) {
	js, err := jetstream.New(v.nc)
	if err != nil {
		return nil, err
	}
	s, err := js.Stream(ctx, "EVENTS")
	if err != nil {
		return nil, err
	}
	return s.GetMsg(ctx, s.CachedInfo().State.LastSeq)
}

func (v *Corrupter) publish(ctx context.Context, m *nats.Msg, id string) error {
	js, err := jetstream.New(v.nc)
	if err != nil {
		return err
	}
	return until(ctx, time.Minute, 100*time.Millisecond, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := js.PublishMsg(ctx, m, jetstream.WithMsgID(id))
		return err
	})
}
