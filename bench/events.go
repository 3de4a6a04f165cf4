package bench

import (
	"strconv"

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

// generator makes one producer's events. It reuses its buffers, so that the
// bench measures Log and not itself.
type generator struct {
	state   uint64
	names   []string
	message []byte
	attrs   [3]schemas.Attr
	pad     int
}

func newGenerator(seed uint64, eventBytes int) *generator {
	g := &generator{state: seed*2654435761 + 1}
	for i := range users {
		g.names = append(g.names, "u-"+strconv.Itoa(i))
	}
	// What the other fields take, on average.
	g.pad = max(0, eventBytes-80)
	return g
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
	g.message = g.message[:0]
	for len(g.message) < g.pad {
		w := g.next()
		for k := 0; k < 6 && len(g.message) < g.pad; k++ {
			g.message = append(g.message, words[w%uint64(len(words))]...)
			g.message = append(g.message, ' ')
			w >>= 8
		}
		g.message = strconv.AppendUint(g.message, w&0xffff, 16)
		g.message = append(g.message, ' ')
	}
	g.attrs = [3]schemas.Attr{
		schemas.String("endpoint", endpoints[r>>8%uint64(len(endpoints))]),
		schemas.Int64("status", int64(200+r>>16%5)),
		schemas.Float64("duration_ms", float64(r>>24&0xfff)/16),
	}
	return schemas.Event{
		Level: levels[r%uint64(len(levels))], Service: "bench", Type: kinds[r>>4%uint64(len(kinds))],
		UserID: g.names[r>>12%users], Message: string(g.message), Attrs: g.attrs[:],
	}
}
