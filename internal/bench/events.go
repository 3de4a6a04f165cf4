package bench

import (
	"iter"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// Words of the generated events: a service's log, with few levels and types, a
// thousand users, and a message that makes up the size.
var (
	levels    = []string{"info", "info", "info", "warn", "error"}
	kinds     = []string{"login", "logout", "purchase", "search", "view"}
	endpoints = []string{"/api/v1/login", "/api/v1/cart", "/api/v1/search", "/api/v1/item", "/health"}
	words     = []string{"request", "served", "from", "cache", "after", "retry", "of", "upstream", "with", "status", "and", "token", "renewed", "for", "session"}
)

// users are as many as make every lane busy.
const users = 1000

// pool is how many messages a generator renders beforehand. An event takes one
// of them: rendering text is not what the bench measures, and 4,096 of them fill
// far more than LZ4's window of 64 KiB, so they do not compress like repeats.
const pool = 4096

// generator makes one producer's events.
type generator struct {
	state    uint64
	names    []string
	messages []string
	attrs    [3]schemas.Attr
	// months are beginnings of months that events lie in, in turn; none: events
	// have no time, and so get that of the producer's clock.
	months []time.Time
	made   int
}

func newGenerator(seed uint64, eventBytes int) *generator {
	g := &generator{state: seed*2654435761 + 1}
	for i := range users {
		g.names = append(g.names, "u-"+strconv.Itoa(i))
	}
	for range pool {
		g.messages = append(g.messages, g.message(max(0, eventBytes-otherBytes)))
	}
	return g
}

// otherBytes is what the other fields take, on average.
const otherBytes = 80

// message is words and numbers of about size bytes.
func (g *generator) message(size int) string {
	var b []byte
	for len(b) < size {
		w := g.next()
		for k := 0; k < 6 && len(b) < size; k++ {
			b = append(b, words[w%uint64(len(words))]...)
			b = append(b, ' ')
			w >>= 8
		}
		b = append(strconv.AppendUint(b, w&0xffff, 16), ' ')
	}
	return string(b)
}

func (g *generator) next() uint64 { // xorshift64 (Marsaglia 2003)
	g.state ^= g.state << 13
	g.state ^= g.state >> 7
	g.state ^= g.state << 17
	return g.state
}

// event is the next one, good until the call after.
func (g *generator) event() schemas.Event {
	r := g.next()
	g.attrs = [3]schemas.Attr{
		schemas.String("endpoint", endpoints[(r>>8)%uint64(len(endpoints))]),
		schemas.Int64("status", int64(200+(r>>16)%5)),
		schemas.Float64("duration_ms", float64(r>>24&0xfff)/16),
	}
	var at time.Time
	if n := len(g.months); n > 0 {
		at = g.months[g.made%n].Add(time.Duration(g.made) * time.Microsecond)
		g.made++
	}
	return schemas.Event{
		Time: at, Level: levels[r%uint64(len(levels))], Service: "bench", Type: kinds[(r>>4)%uint64(len(kinds))],
		UserID: g.names[(r>>12)%users], Message: g.messages[(r>>40)%pool], Attrs: g.attrs[:],
	}
}

// lastMonths are the beginnings of n months, this one first.
func lastMonths(now time.Time, n int) []time.Time {
	now = now.UTC()
	var out []time.Time
	for i := range n {
		out = append(out, time.Date(now.Year(), now.Month()-time.Month(i), 1, 0, 0, 0, 0, time.UTC))
	}
	return out
}

// events are the next n, each good until the one after it.
func (g *generator) events(n int) iter.Seq[schemas.Event] {
	return func(yield func(schemas.Event) bool) {
		for range n {
			if !yield(g.event()) {
				return
			}
		}
	}
}

// Events are n generated events, the same for the same seed: what others are given to be
// compared with. Each is good until the next.
func Events(seed uint64, n, eventBytes int) iter.Seq[schemas.Event] {
	return newGenerator(seed, eventBytes).events(n)
}
