package lines

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"net/http"
	"net/url"
	"reflect"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/request"
	"github.com/almanac-events/almanac/schemas"
)

// Bounds of the requests under a key that a gateway remembers.
const (
	maxKeys     = 100_000
	maxKeyBytes = 32 << 20
	// keptLines is how many lines of a body are told apart.
	keptLines = 64
)

// keys remembers, for schemas.GivenFor, what was sent under each Idempotency-Key: another body under
// the same key is refused, and the same one is answered as the first time, also where the topic takes
// other events of it by then. It is of one process: the stream tells repeats of one body, whichever
// gateway gets them.
type keys struct {
	now  func() time.Time
	seed maphash.Seed

	mu    sync.Mutex
	of    map[string]*sent
	by    map[string]*writer // by its name
	bytes int
}

// writer is who sent requests: a token, whose keys are its own.
type writer struct {
	queue []*sent // oldest first
	bytes int
}

// sent is a request under a key.
type sent struct {
	id   string
	by   *writer
	at   time.Time
	form form
	// answer is what the first request was answered; nil: it is under way.
	answer *Answer
	gone   bool // it was given up: the key is free
}

// form is what a request's body and parameters are, so that another can be told from it.
type form struct {
	params uint64
	body   uint64
	bytes  int
	lines  []uint32 // of the first lines
}

func newKeys(now func() time.Time) *keys {
	return &keys{now: now, seed: maphash.MakeSeed(), of: map[string]*sent{}, by: map[string]*writer{}}
}

// formOf is the form of a request. How the answer is waited for is not part of it.
func (k *keys) formOf(q url.Values, contentType string, body []byte) form {
	said := url.Values{}
	for name, v := range q {
		if name != "ack" {
			said[name] = v
		}
	}
	f := form{params: maphash.String(k.seed, said.Encode()+"\n"+contentType), body: maphash.Bytes(k.seed, body), bytes: len(body)}
	for line := range bytes.Lines(body) {
		if len(f.lines) == keptLines {
			break
		}
		f.lines = append(f.lines, uint32(maphash.Bytes(k.seed, line)))
	}
	return f
}

// differs says what of a request is not as in the one before it; "" where nothing is.
func (f *form) differs(from *form) string {
	switch {
	case f.body == from.body && f.bytes == from.bytes && f.params == from.params:
		return ""
	case f.body == from.body && f.bytes == from.bytes:
		return "its parameters or its Content-Type differ, and the body is the same"
	}
	line := 0
	for line < min(len(f.lines), len(from.lines)) && f.lines[line] == from.lines[line] {
		line++
	}
	size := fmt.Sprintf("its body has %d bytes, and had %d", f.bytes, from.bytes)
	if line == keptLines {
		return fmt.Sprintf("%s; the first %d lines are the same", size, line)
	}
	return fmt.Sprintf("%s; they differ from line %d on", size, line+1)
}

// claim takes a key for a request of a writer. Of a request under way or answered that had the same form it
// returns what is known; another form is refused.
func (k *keys) claim(name, topic, key string, f form) (s *sent, first bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	k.makeSpace(name, now)
	id := name + " " + topic + " " + key // neither of the first two has a space
	if s := k.of[id]; s != nil {
		if how := f.differs(&s.form); how != "" {
			return nil, false, request.Refuse(http.StatusUnprocessableEntity, "key_used", fmt.Sprintf(
				"the Idempotency-Key %q was sent %s ago with another request: %s; nothing was taken", key, now.Sub(s.at).Round(time.Second), how),
				"send what was corrected or added under a key of its own; a key is free again after "+schemas.GivenFor.String())
		}
		return s, false, nil
	}
	w := k.by[name]
	if w == nil {
		w = &writer{}
		k.by[name] = w
	}
	s = &sent{id: id, by: w, at: now, form: f}
	k.of[id], w.queue = s, append(w.queue, s)
	k.grow(s, s.size())
	return s, true, nil
}

// makeSpace forgets what is past of the writer, and where there is no room what is past of all, and then the oldest of the writer that
// holds most: one that sends many keys has its own forgotten, not those of others.
func (k *keys) makeSpace(name string, now time.Time) {
	if w := k.by[name]; w != nil {
		k.trim(name, w, now)
	}
	if !k.full() {
		return
	}
	for name, w := range k.by {
		k.trim(name, w, now)
	}
	for k.full() {
		var most *writer
		for _, w := range k.by {
			if most == nil || w.bytes > most.bytes {
				most = w
			}
		}
		k.dropOldest(most)
	}
}

func (k *keys) full() bool { return len(k.of) >= maxKeys || k.bytes > maxKeyBytes }

// trim forgets what is past of a writer, and one of whom nothing is left.
func (k *keys) trim(name string, w *writer, now time.Time) {
	for len(w.queue) > 0 && (w.queue[0].gone || now.Sub(w.queue[0].at) >= schemas.GivenFor || len(w.queue) >= maxKeys) {
		k.dropOldest(w)
	}
	if len(w.queue) == 0 {
		delete(k.by, name)
	}
}

func (k *keys) dropOldest(w *writer) {
	k.drop(w.queue[0])
	w.queue[0] = nil
	w.queue = w.queue[1:]
}

// grow counts bytes of a request.
func (k *keys) grow(s *sent, n int) {
	k.bytes += n
	s.by.bytes += n
}

// drop forgets a request.
func (k *keys) drop(s *sent) {
	if k.of[s.id] == s {
		delete(k.of, s.id)
		k.grow(s, -s.size())
	}
	s.gone = true
}

// free gives a key back: nothing was stored under it.
func (k *keys) free(s *sent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.drop(s)
}

// answered remembers the first answer; s is nil without a key.
func (k *keys) answered(s *sent, a *Answer) {
	if s == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.gone || s.answer != nil {
		return
	}
	was := s.size()
	kept := Answer{Accepted: a.Accepted, Refused: a.Refused, Total: a.Total}
	s.answer = &kept
	k.grow(s, s.size()-was)
}

// again returns the first answer where a repeat of the request would be taken otherwise, as the topic
// was changed since; nil: it is taken as before, or the first is under way.
func (k *keys) again(s *sent, a *Answer) *Answer {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.answer == nil || s.answer.Accepted == a.Accepted && s.answer.Total == a.Total && reflect.DeepEqual(s.answer.Refused, a.Refused) {
		return nil
	}
	was := *s.answer
	was.Repeated = true
	return &was
}

// size is what a request holds in memory, nearly.
func (s *sent) size() int {
	n := 200 + 2*len(s.id) + 4*len(s.form.lines)
	if s.answer != nil {
		for i := range s.answer.Refused {
			n += 64 + len(s.answer.Refused[i].Reason) + len(s.answer.Refused[i].Message)
		}
	}
	return n
}
