package router

import "sync"

// readings are the revisions of the registry that the topics were read at by which this router works: each lane's,
// and a sweep's. A lane that was stopped works by its own until it has ended.
type readings struct {
	mu   sync.Mutex
	held map[any]uint64
}

// hold notes that who works by the topics as they were at a revision.
func (r *readings) hold(who any, rev uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held == nil {
		r.held = map[any]uint64{}
	}
	r.held[who] = rev
}

// end notes that it works no longer.
func (r *readings) end(who any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.held, who)
}

// oldest is the revision below which nothing works, where the topics were last read at rev.
func (r *readings) oldest(rev uint64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, held := range r.held {
		rev = min(rev, held)
	}
	return rev
}
