package metrics

import "sync"

const (
	// MaxNames bounds the values of a label that names topics or tokens: with more, a page of 20 metrics a topic would
	// have thousands of lines, and a client that makes topics could make any number.
	MaxNames = 64
	// Other is the name of all that are beyond the bound.
	Other = "_other"
)

// Names bounds the values of a label: the first MaxNames are themselves, and others are Other. It is safe for
// concurrent use.
type Names struct {
	mu    sync.RWMutex
	known map[string]bool
}

// Of returns the value of the label for a name.
func (n *Names) Of(name string) string {
	n.mu.RLock()
	known, full := n.known[name], len(n.known) >= MaxNames
	n.mu.RUnlock()
	switch {
	case known:
		return name
	case full:
		return Other
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.known == nil {
		n.known = map[string]bool{}
	}
	if !n.known[name] && len(n.known) >= MaxNames {
		return Other
	}
	n.known[name] = true
	return name
}

// Known returns the value of the label for a name that may be any word: itself where it is known, and Other.
func (n *Names) Known(name string) string {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.known[name] {
		return name
	}
	return Other
}
