package sinks

import (
	"math/rand/v2"
	"time"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/schemas"
)

// position is a place in a shard: after pos frames, with so many rows and bytes.
type position struct{ pos, rows, bytes uint64 }

// state is what this sink knows of a shard. Only the loop touches it.
type state struct {
	ref     schemas.ShardRef
	tail    position
	tailSeq uint64 // in SHARDS
	// watch counts the watches of SHARDS: the stream may be another one after each. open says that
	// the registry has the shard as active, and sure that its end was compared with ClickHouse
	// since the watch began.
	watch      int
	open, sure bool

	head position // rows and bytes are known when counted
	// absent is how many positions below the head ClickHouse has no rows of: an erasure took
	// them, and the registry's floor stands for them. ClickHouse's own head is head - absent.
	absent    uint64
	headKnown bool
	counted   bool
	next      uint64 // sequence in SHARDS of the frame after the head; 0: unknown
	prev      string // digest of the frame at the head; empty: unknown

	linger   time.Duration    // from one insert to the next; see fresh.go
	hurried  time.Time        // when a reader last said that it waits for the topic
	since    time.Time        // when the shard fell behind; zero while it is not
	lastAt   time.Time        // when its last frame was heard of
	beganAt  time.Time        // when the last insert, or the work under way, began
	storedAt time.Time        // when its last insert ended
	took     [2]time.Duration // the last two inserts, the newest first
	worked   [2]time.Duration // the same, from when the work was due: fetching and the wait for a turn too
	working  bool
	weight   uint64 // of the work
	fault    error
	retryAt  time.Time
	failed   int // how often in a row
}

// behind says whether frames are missing in ClickHouse, as far as is known, or whether the
// shard's end is still to be compared.
func (s *state) behind() bool {
	return !s.headKnown || s.head.pos < s.tail.pos || s.doubtful()
}

// doubtful reports whether the shard's positions may have been given again since its end was
// compared last.
func (s *state) doubtful() bool { return s.open && !s.sure }

// watched takes the number of the watch that gave a frame: a new one begins with the last frame of every
// shard, which may lie below the one that was seen.
func (s *state) watched(watch int, tail position) {
	if watch == s.watch {
		return
	}
	s.watch, s.sure = watch, false
	if tail.pos < s.tail.pos {
		s.tail, s.headKnown, s.counted, s.next, s.prev = position{}, false, false, 0, ""
	}
}

// dueAt is when the shard's frames shall be stored. A full batch waits for
// nothing. Else they begin a linger after each other, or less the fuller the next one
// is: half a batch waits for half of it. After a quiet time FirstWait is
// enough, so that what comes now and then is seen at once.
//
// Where inserts take long, the machine has no time to give away, and small ones cost
// more a row: the shard rests as all shards together ask (interval.go), and so comes to
// larger batches.
func (s *state) dueAt(cfg *Config, r interval) time.Time {
	if s.fault != nil {
		return s.retryAt
	}
	gap := s.gap()
	if s.counted {
		fill := max(float64(s.tail.rows-s.head.rows)/float64(cfg.BatchRows), float64(s.tail.bytes-s.head.bytes)/float64(cfg.BatchBytes))
		gap = time.Duration(float64(gap) * max(0, 1-fill))
	}
	due := s.beganAt.Add(gap)
	if quiet := s.since.Add(min(cfg.FirstWait, gap)); quiet.After(due) {
		due = quiet
	}
	if gap == 0 {
		return due
	}
	if rested := r.end(s.storedAt); rested.After(due) {
		return rested
	}
	return due
}

// noticed takes a frame's headers from the watcher.
func (s *state) noticed(tail position, seq uint64, now time.Time) {
	if tail.pos <= s.tail.pos {
		return
	}
	if s.headKnown && tail.pos <= s.head.pos { // new, and stored already?
		s.sure = false
	}
	s.tail, s.tailSeq, s.lastAt = tail, seq, now
	if s.since.IsZero() {
		s.since = now
	}
}

// hinted takes a position that is known to be stored. It settles the matter only
// when nothing is missing then; otherwise the head is read for sure before work.
func (s *state) hinted(head uint64) {
	if !s.headKnown && !s.working && !s.doubtful() && head >= s.tail.pos {
		s.headKnown, s.head, s.absent, s.prev, s.since = true, position{pos: head}, 0, "", time.Time{}
	}
}

// wentBack takes a head that was read after ClickHouse restarted. Where it lies
// below what this sink saw stored there, which is the head less what is absent, the shard
// is looked at again.
func (s *state) wentBack(head uint64, now time.Time) bool {
	if !s.headKnown || s.working || head >= s.head.pos-min(s.absent, s.head.pos) {
		return false
	}
	s.headKnown, s.counted, s.next, s.prev = false, false, 0, ""
	if s.since.IsZero() {
		s.since = now
	}
	return true
}

// stored takes the outcome of work on the shard.
func (s *state) stored(o outcome, now time.Time) {
	s.working = false
	if o.err != nil {
		s.fault, s.headKnown, s.counted, s.next, s.prev = o.err, false, false, 0, ""
		if s.retryAt = now; o.outage { // it is over
			return
		}
		s.failed++
		s.retryAt = now.Add(backoff.After(s.failed, minPause, maxPause, rand.Float64()))
		return
	}
	s.fault, s.failed = nil, 0
	s.sure = s.sure || o.sure && o.watch == s.watch
	s.took = [2]time.Duration{o.took, s.took[0]}
	s.worked = [2]time.Duration{now.Sub(s.beganAt), s.worked[0]}
	if !o.began.IsZero() {
		s.beganAt = o.began // it waited for its turn, and so shards that were due together part
	}
	s.headKnown, s.head, s.absent, s.counted, s.next, s.prev, s.storedAt = true, o.head, o.absent, o.counted, o.next, o.prev, now
	if s.since = now; !s.behind() {
		s.since = time.Time{}
	}
}

// Pauses after a fault: from a busy server's breath to one that is restarting.
const (
	minPause = 100 * time.Millisecond
	maxPause = 5 * time.Second
)

// nextDue picks the shard whose turn it is, and when: the earliest due among
// those that are behind, not at work, and owned.
func nextDue(pending map[schemas.Shard]*state, cfg *Config) (*state, time.Time) {
	r := cfg.interval(pending)
	var best *state
	var at time.Time
	for _, s := range pending {
		if s.working {
			continue
		}
		if due := s.dueAt(cfg, r); best == nil || due.Before(at) {
			best, at = s, due
		}
	}
	return best, at
}
