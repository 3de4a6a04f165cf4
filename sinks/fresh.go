package sinks

import (
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/schemas"
)

// A topic says how long an accepted event may take until SQL has it. An insert costs the
// same whatever it brings, so a shard waits as long as it may: until routing and the insert
// itself just have time left. A reader that waits for SQL says so on WaitingSubject; then
// the topic's shards go by hurriedLinger for hurriedFor.

const (
	// reserve is what routing and an insert may take of a topic's sql_fresh, at most a
	// half of it: a router's batches are up to a second apart where many lanes are busy.
	reserve = 1500 * time.Millisecond
	// reserveWork is what the work itself may take of that. It counts twice: an event that
	// comes when a batch was just fetched waits for this one's insert and for its own.
	reserveWork = time.Second
	// hurriedLinger is from one insert to the next while a reader waits for SQL:
	// what parts merge and inserts cost bears for seconds, and a person too.
	hurriedLinger = time.Second
	// hurriedFor is how long one word of a reader counts: it may come before the
	// router committed what the reader waits for.
	hurriedFor = 3 * time.Second
	// hurriesAhead bounds the words that wait for the loop; those beyond are repeated
	// by readers that still wait.
	hurriesAhead = 64
)

// lingerOf is from one insert of a shard to the next, for SQL to be so fresh.
func lingerOf(within time.Duration) time.Duration { return within - min(within/2, reserve) }

// fresh knows how long the shards of each topic linger, as the registry last said.
type fresh struct {
	fixed time.Duration // for all topics; 0: as each says

	mu     sync.Mutex
	topics map[string]time.Duration
}

func newFresh(fixed time.Duration) *fresh {
	return &fresh{fixed: fixed, topics: map[string]time.Duration{}}
}

// heard takes all topics that there are.
func (f *fresh) heard(topics []schemas.Topic) {
	m := make(map[string]time.Duration, len(topics))
	for i := range topics {
		m[topics[i].Name] = topics[i].FreshWithin()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.topics = m
}

// linger is that of a topic's shards. One that was declared since is as fresh as can be
// for one round of housekeeping: people look at a new topic.
func (f *fresh) linger(topic string) time.Duration {
	if f.fixed > 0 {
		return f.fixed
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	within, ok := f.topics[topic]
	if !ok {
		within = schemas.MinSQLFresh
	}
	return lingerOf(within)
}

// gap is how far apart the shard's inserts are now: less while a reader waits, and where
// the work took longer than what is reserved for it, so that the topic's promise holds on
// a busy machine. The quicker of the last two counts, and half of the linger stays.
func (s *state) gap() time.Duration {
	gap := s.linger
	if over := 2*min(s.worked[0], s.worked[1]) - reserveWork; over > 0 {
		gap = max(gap-over, gap/2)
	}
	if !s.hurried.IsZero() && s.since.Before(s.hurried.Add(hurriedFor)) {
		return min(gap, hurriedLinger)
	}
	return gap
}

// hurry takes a reader's word that it waits for a topic.
func (s *Sinks) hurry(topic string, now time.Time) {
	s.hurried[topic] = now
	for _, st := range s.schedule {
		if st.ref.Topic == topic {
			st.hurried = now
		}
	}
	for name, at := range s.hurried { // it does not grow with topics that are gone
		if now.Sub(at) > hurriedFor {
			delete(s.hurried, name)
		}
	}
}

// listener hears readers that wait.
type listener struct {
	topics chan string
	sub    *nats.Subscription
}

// listen begins to hear them. What comes faster than the loop takes it is dropped: they
// say it again.
func listen(nc *nats.Conn) (*listener, error) {
	l := &listener{topics: make(chan string, hurriesAhead)}
	var err error
	l.sub, err = nc.Subscribe(schemas.SubjectsWaiting, func(m *nats.Msg) {
		select {
		case l.topics <- schemas.WaitingTopic(m.Subject):
		default:
		}
	})
	return l, err
}

func (l *listener) stop() { _ = l.sub.Unsubscribe() }
