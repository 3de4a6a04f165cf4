package embedded

import "time"

// backoff gives the pauses between attempts to bring a server back: long enough not to burn a CPU, short enough not to
// be noticed after one accident.
type backoff struct {
	first, longest time.Duration
	next           time.Duration
}

// steadyAfter: a server that lived this long has earned the first pause again.
const steadyAfter = time.Minute

// pause before the next attempt, after a life that lasted lived.
func (b *backoff) pause(lived time.Duration) time.Duration {
	if b.next == 0 || lived >= steadyAfter {
		b.next = b.first
	}
	p := b.next
	b.next = min(2*p, b.longest)
	return p
}
