package send

import "time"

// A send that waits says so after waitingAfter, and what for; then every waitingEvery until something is accepted.
const (
	waitingAfter = 2 * time.Second
	waitingEvery = time.Minute
)

// notices tells when a send that waits says so.
type notices struct{ next time.Duration }

// due reports whether one is due, nothing having been accepted for idle.
func (n *notices) due(idle time.Duration) bool {
	switch {
	case idle < waitingAfter:
		n.next = waitingAfter
		return false
	case idle < n.next:
		return false
	}
	n.next = idle + waitingEvery
	return true
}
