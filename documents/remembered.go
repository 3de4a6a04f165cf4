package documents

import (
	"strings"
	"sync"
	"time"

	"github.com/almanac-events/almanac/schemas/document"
)

// rememberedBytes bounds what a collection remembers of documents: some 4,000 of them. A gateway has a hundred collections at most.
const rememberedBytes = 1 << 20

// remembered are the newest versions that a collection wrote or read last, without their bodies. A write that goes by
// one expects its sequence: where another write came first, it is refused, and the record is read. So nothing is ever
// answered from here. It keeps two generations, and drops the older one where the newer has half of the bound, or its age.
type remembered struct {
	mu           sync.Mutex
	newer, older map[string]version
	bytes        int64     // of newer
	turned       time.Time // when newer began
	session      uint64    // of the connection: a server that began again may have lost its end
	lookFor      int       // writes that read first, since what was remembered was not the newest
}

// looksAfterRefusal is how many writes read the record first after one that did not was refused: a refusal costs other
// writes of its group a second try. So a document that several processes change costs one refusal of a hundred.
const looksAfterRefusal = 100

// version is what a write goes by of the version before it.
type version struct {
	version, seq     uint64
	created, changed int64
	op, path, user   string
	at               time.Time // when it was remembered
}

// rememberedFor is how long a version is believed to be the newest. The cleaner leaves a stub in the place of one that
// did not change for hot_for (ten minutes at least), and a write that expects the record is refused then.
const rememberedFor = 5 * time.Minute

// bytesOf is what a version takes in memory, with its place in a map.
func bytesOf(id string, v *version) int64 { return int64(192 + len(id) + len(v.path) + len(v.user)) }

// put remembers a record, unless a newer one is known.
func (m *remembered) put(session uint64, r *document.Record, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin(session, now)
	v := version{r.Version, r.Expect(), r.Created, r.Changed, r.Op, r.Path, r.User, now}
	was, known := m.newer[r.ID]
	if !known {
		was, known = m.older[r.ID]
	}
	if known && (was.seq > v.seq || was.seq == v.seq && now.Sub(was.at) < rememberedFor/2) {
		return
	}
	if was.path == v.path {
		v.path = was.path
	} else {
		v.path = strings.Clone(v.path) // it is part of a message
	}
	v.user = strings.Clone(v.user)
	m.add(strings.Clone(r.ID), v)
}

// add puts a version into the newer generation.
func (m *remembered) add(id string, v version) {
	if was, there := m.newer[id]; there {
		m.bytes -= bytesOf(id, &was)
	}
	if n := bytesOf(id, &v); m.bytes+n > rememberedBytes/2 {
		m.turn(m.turned)
	}
	m.newer[id], m.bytes = v, m.bytes+bytesOf(id, &v)
}

// begin forgets everything where the connection is another one than before, and what nothing may go by any more.
func (m *remembered) begin(session uint64, now time.Time) {
	switch {
	case m.newer == nil || m.session != session:
		m.newer, m.older, m.bytes, m.session, m.turned = map[string]version{}, nil, 0, session, now
	case now.Sub(m.turned) > rememberedFor:
		m.turn(now)
	}
}

// turn begins another generation.
func (m *remembered) turn(now time.Time) {
	m.older, m.newer, m.bytes, m.turned = m.newer, map[string]version{}, 0, now
}

// get returns the records that changes of some documents may go by: nil for a create of one that is not known. known is
// false where a record has to be read.
func (m *remembered) get(session uint64, ops []Op, now time.Time) (last []*document.Record, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.begin(session, now)
	if m.lookFor > 0 {
		m.lookFor--
		return nil, false
	}
	last = make([]*document.Record, len(ops))
	for i := range ops {
		id := ops[i].ID
		v, there := m.newer[id]
		if !there {
			if v, there = m.older[id]; there {
				m.add(id, v)
			}
		}
		switch {
		case there && now.Sub(v.at) > rememberedFor:
			return nil, false
		case there:
			last[i] = &document.Record{ID: id, Version: v.version, Seq: v.seq, Created: v.created, Changed: v.changed, Op: v.op, Path: v.path, User: v.user}
		case ops[i].Kind != Create:
			return nil, false
		}
	}
	return last, true
}

// refused forgets documents after a write that did not read them was refused, as far as it went by what is still remembered: where
// another write of this process came first, its version is known by now. created: it did not go by what is remembered.
func (m *remembered) refused(ops []Op, last []*document.Record, created bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range ops {
		id := ops[i].ID
		newer, there := m.newer[id]
		older, was := m.older[id]
		if last[i] != nil && (there && newer.seq != last[i].Expect() || !there && was && older.seq != last[i].Expect()) {
			continue
		}
		if !created {
			m.lookFor = looksAfterRefusal
		}
		if there {
			m.bytes -= bytesOf(id, &newer)
			delete(m.newer, id)
		}
		delete(m.older, id)
	}
}
