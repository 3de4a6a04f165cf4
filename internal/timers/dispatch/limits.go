package dispatch

import (
	"sync"
	"time"

	"github.com/almanac-events/almanac/schemas/timer"
)

// limits count the calls under way, of the dispatcher, by host and by group. A group may have as many calls as are
// free: one alone ends at half of them, two at a third each, and there is always a place for another group.
type limits struct {
	mu      sync.Mutex
	calls   int
	perHost int
	used    int
	hosts   map[string]int
	groups  map[string]int
	rates   map[string]rate
	freed   []chan struct{} // of lanes
}

// rate counts what began in a group in one second.
type rate struct {
	second int64
	n      int
}

func newLimits(calls, perHost int) *limits {
	return &limits{calls: calls, perHost: perHost, hosts: map[string]int{}, groups: map[string]int{}, rates: map[string]rate{}}
}

// blocker is why an attempt cannot begin: there is no place at a host, or in a group.
type blocker struct{ host, group string }

// place is what an attempt holds until it ends.
type place struct{ host, group string }

// groupKey names a group among those of all topics.
func groupKey(topic, group string) string { return topic + "." + group }

// all is the blocker of a dispatcher without a free call slot.
var all = blocker{}

// take takes a place for a call. Without one it returns what there is none of.
func (l *limits) take(g *timer.Group, host string, now time.Time) (at place, by blocker, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	group := groupKey(g.Topic, g.Name)
	r := l.rates[group]
	if r.second != now.Unix() {
		r = rate{second: now.Unix()}
	}
	switch {
	case l.used >= l.calls:
		return place{}, all, false
	case g.Paused, g.MaxConcurrent > 0 && l.groups[group] >= g.MaxConcurrent, g.MaxPerSecond > 0 && r.n >= g.MaxPerSecond:
		return place{}, blocker{group: group}, false
	case l.share(group) <= 0:
		return place{}, blocker{group: group}, false
	case l.hosts[host] >= l.perHost:
		return place{}, blocker{host: host}, false
	}
	l.used++
	l.hosts[host]++
	l.groups[group]++
	if g.MaxPerSecond > 0 {
		r.n++
		l.rates[group] = r
	}
	return place{host, group}, all, true
}

// share returns how many calls a group may begin beside those it has, as others leave them.
func (l *limits) share(group string) int {
	return max(0, l.calls-l.used-l.groups[group]+1) / 2
}

// free returns how many attempts the blocker might let begin. g is the group of one that names a group, nil
// if it is not known.
func (l *limits) free(b blocker, g *timer.Group, now time.Time) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.calls - l.used
	if b.host != "" {
		n = min(n, l.perHost-l.hosts[b.host])
	}
	if b.group == "" {
		return n
	}
	if g == nil || g.Paused {
		return 0
	}
	n = min(n, l.share(b.group))
	if g.MaxConcurrent > 0 {
		n = min(n, g.MaxConcurrent-l.groups[b.group])
	}
	if r := l.rates[b.group]; g.MaxPerSecond > 0 && r.second == now.Unix() {
		n = min(n, g.MaxPerSecond-r.n)
	}
	return n
}

// release gives a place back and wakes the lanes.
func (l *limits) release(at place) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used--
	countDown(l.hosts, at.host)
	countDown(l.groups, at.group)
	for _, c := range l.freed {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func countDown(m map[string]int, key string) {
	if m[key]--; m[key] <= 0 {
		delete(m, key)
	}
}

// wake adds a channel that is told of each release, until the returned function is called.
func (l *limits) wake(c chan struct{}) (stop func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.freed = append(l.freed, c)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i := range l.freed {
			if l.freed[i] == c {
				l.freed = append(l.freed[:i:i], l.freed[i+1:]...)
				return
			}
		}
	}
}

// groups are the groups as they were read last.
type groups struct {
	mu sync.Mutex
	m  map[string]timer.Group
}

func (g *groups) set(topic string, gs []timer.Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.m == nil {
		g.m = map[string]timer.Group{}
	}
	for _, one := range gs {
		g.m[groupKey(topic, one.Name)] = one
	}
}

// of returns the groups of a topic.
func (g *groups) of(topic string) (out []timer.Group) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, one := range g.m {
		if one.Topic == topic {
			out = append(out, one)
		}
	}
	return out
}

func (g *groups) get(topic, name string) (timer.Group, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	one, ok := g.m[groupKey(topic, name)]
	return one, ok
}

// flights are the claims of this dispatcher that are being worked on.
type flights struct {
	mu   sync.Mutex
	live map[string]bool
}

func (f *flights) add(claim string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[claim] = true
}

// adopt adds a claim that is not there: false if it is.
func (f *flights) adopt(claim string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.live[claim] {
		return false
	}
	f.live[claim] = true
	return true
}

func (f *flights) remove(claim string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.live, claim)
}

// has says whether a claim is being worked on here. One of our own that is not was left behind,
// and the lane takes it up again.
func (f *flights) has(claim string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live[claim]
}
