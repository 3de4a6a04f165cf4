package series

import "sync"

// wholeLists remembers the topics whose list had every series when it was last read: it is asked early
// then. To be wrong costs that statement.
type wholeLists struct {
	mu sync.Mutex
	of map[string]bool
}

// maxRemembered bounds the topics; beyond, all are forgotten.
const maxRemembered = 1000

func (w *wholeLists) was(topic string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[topic]
}

func (w *wholeLists) note(topic string, whole bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil || len(w.of) >= maxRemembered {
		w.of = map[string]bool{}
	}
	w.of[topic] = whole
}
