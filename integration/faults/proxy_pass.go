package faults

import (
	"net"
	"time"
)

// piece is bytes under way, and when they may arrive.
type piece struct {
	data []byte
	due  time.Time
}

// underWay is how many pieces a link holds in each direction: what a slow link keeps in its buffers.
const underWay = 64

// pass moves bytes one way until either side ends.
func (l *link) pass(from, to net.Conn, up bool) {
	defer l.close()
	pieces := make(chan piece, underWay)
	go func() {
		defer close(pieces)
		for {
			buf := make([]byte, 16<<10)
			n, err := from.Read(buf)
			if n > 0 {
				delay, _ := l.p.speed(up)
				select {
				case pieces <- piece{buf[:n], time.Now().Add(delay)}:
				case <-l.done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	for piece := range pieces {
		if !l.wait(time.Until(piece.due)) || !l.open(up) {
			break
		}
		if _, rate := l.p.speed(up); rate > 0 && !l.wait(time.Duration(len(piece.data))*time.Second/time.Duration(rate)) {
			break
		}
		if l.isDeaf() {
			continue
		}
		data, burnt := l.burn(piece.data, up)
		if _, err := to.Write(data); err != nil {
			break
		}
		if burnt != nil {
			if burnt.then != nil {
				burnt.then()
			}
			if burnt.freeze {
				if !l.open(up) {
					break
				}
				if _, err := to.Write(piece.data[len(data):]); err != nil {
					break
				}
				continue
			}
			go l.p.Reset()
			break
		}
	}
	l.close()
	for range pieces { // let the reader end
	}
}

// open waits while nothing moves on the link; false when it ended meanwhile.
func (l *link) open(up bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		l.p.mu.Lock()
		stall := l.p.stall || up && l.frozen
		l.p.mu.Unlock()
		if !stall {
			return true
		}
		select {
		case <-l.done:
			return false
		case <-tick.C:
		}
	}
}

func (l *link) wait(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-l.done:
		return false
	case <-timer.C:
		return true
	}
}

func (l *link) isDeaf() bool {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return l.deaf
}

func (p *Proxy) speed(up bool) (time.Duration, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !up {
		return p.delay + p.late, p.rate
	}
	return p.delay, p.rate
}

// burn is the part of data that still goes through, and the fuse when it burnt down with it.
func (l *link) burn(data []byte, up bool) ([]byte, *fuse) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	at := &l.p.short
	if up {
		at = &l.p.fuse
	}
	f := *at
	if f == nil {
		return data, nil
	}
	if f.left -= len(data); f.left > 0 {
		return data, nil
	}
	*at, l.frozen = nil, f.freeze
	return data[:len(data)+f.left], f
}
