package series

import "sync"

// wholeLists remembers how many series a topic's list had when it was last read and had them all: it is
// asked early then. To be wrong costs that statement.
type wholeLists struct {
	mu sync.Mutex
	of map[string]int64
}

// maxRemembered bounds the topics; beyond, all are forgotten.
const maxRemembered = 1000

func (w *wholeLists) was(topic string) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.of[topic]
}

func (w *wholeLists) note(topic string, series int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil || len(w.of) >= maxRemembered {
		w.of = map[string]int64{}
	}
	w.of[topic] = series
}
