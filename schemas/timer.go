package schemas

import (
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
)

// Headers of a timer's record, beside those in fronts.go.
const (
	HeaderFirst      = "Almanac-First"       // unix ns of the revision's first attempt
	HeaderHost       = "Almanac-Host"        // host and port of the callback
	HeaderCallStatus = "Almanac-Call-Status" // of the HTTP answer
	HeaderCallError  = "Almanac-Call-Error"  // why a call failed, a word
	HeaderCallDetail = "Almanac-Call-Detail" // beginning of the answer, or the whole error
	HeaderCallTook   = "Almanac-Call-Took"   // microseconds
	HeaderLate       = "Almanac-Late"        // microseconds that the call began after its due time
)

// Why the identity of a timer is refused.
var (
	// ErrTimerGroup: a group's name breaks the rule [a-z0-9_-]{1,63}.
	ErrTimerGroup = errors.New("bad timer group")
	// ErrTimerID: a timer's id is empty, too long or has a character that a subject cannot hold.
	ErrTimerID = errors.New("bad timer id")
	// ErrTimerSlots: a group's number of slots is not from 1 to MaxTimerSlots.
	ErrTimerSlots = errors.New("bad number of slots")
)

const (
	// MaxTimerIDBytes bounds a timer's id, which is a token of its subject.
	MaxTimerIDBytes = 255
	// MaxTimerSlots bounds the slots of a group.
	MaxTimerSlots = 4096
	// DefaultTimerSlots suits a group of up to a million timers.
	DefaultTimerSlots = 256
	// DefaultTimerTopic is the topic of timers that name none. The first group makes it.
	DefaultTimerTopic = "timers"
)

// A dispatcher that loads checks both for each record it reads, so they are tables and not regular expressions.
const maxTimerGroupBytes = 63

var (
	timerGroupBytes = byteTable("abcdefghijklmnopqrstuvwxyz0123456789_-")
	timerIDBytes    = byteTable("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_:=@/+~-")
)

func byteTable(of string) (t [256]bool) {
	for i := range len(of) {
		t[of[i]] = true
	}
	return t
}

// madeOf reports whether s has no other bytes than those of a table.
func madeOf(s string, t *[256]bool) bool {
	for i := range len(s) {
		if !t[s[i]] {
			return false
		}
	}
	return true
}

// ValidateTimerGroup reports why s cannot name a group.
func ValidateTimerGroup(s string) error {
	if s == "" || len(s) > maxTimerGroupBytes || !madeOf(s, &timerGroupBytes) {
		return fmt.Errorf("%w: %q must match [a-z0-9_-]{1,63}", ErrTimerGroup, s)
	}
	return nil
}

// ValidateTimerID reports why s cannot be the id of a timer.
func ValidateTimerID(s string) error {
	switch {
	case s == "":
		return fmt.Errorf("%w: it is empty; give 1 to %d characters of [A-Za-z0-9_:=@/+~-]", ErrTimerID, MaxTimerIDBytes)
	case len(s) > MaxTimerIDBytes:
		return fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrTimerID, len(s), MaxTimerIDBytes)
	case !madeOf(s, &timerIDBytes):
		return fmt.Errorf("%w: %q has other characters than [A-Za-z0-9_:=@/+~-]", ErrTimerID, s)
	}
	return nil
}

// ValidateTimerSlots reports why a group cannot have n slots.
func ValidateTimerSlots(n int) error {
	if n < 1 || n > MaxTimerSlots {
		return fmt.Errorf("%w: %d, expected 1 to %d", ErrTimerSlots, n, MaxTimerSlots)
	}
	return nil
}

// TimerSlot returns the slot of a timer: CRC-32 (IEEE) of its id modulo the group's slots.
func TimerSlot(id string, slots int) int {
	return int(crc32.ChecksumIEEE([]byte(id)) % uint32(slots))
}

// TimerKey is where a timer lives in the stream TIMERS.
type TimerKey struct {
	Topic string
	First int // Topic.First
	Lane  int
	Group string
	Slot  int
	ID    string
}

// NewTimerKey computes slot and lane of a timer.
func NewTimerKey(topic, group, id string, slots, lanes int) TimerKey {
	slot := TimerSlot(id, slots)
	return TimerKey{Topic: topic, Lane: slot % lanes, Group: group, Slot: slot, ID: id}
}

// Subject is timers.<topic>.<lane>.<group>.<slot>.<id>.
func (k TimerKey) Subject() string {
	return TimerSubject(FrontTopic(k.Topic, k.First), k.Lane, k.Group, k.Slot, k.ID)
}

// ParseTimerSubject splits timers.<topic>.<lane>.<group>.<slot>.<id>. A subject whose slot is not
// that of its id in some group is not found out here: the number of slots is the group's.
func ParseTimerSubject(subject string) (k TimerKey, err error) {
	var topic, lane, slot string
	if topic, lane, k.Group, slot, k.ID, err = TimerTokens(subject); err != nil {
		return TimerKey{}, err
	}
	if k.Topic, k.First, err = ParseFrontTopic(topic); err != nil {
		return TimerKey{}, err
	}
	if k.Lane, err = ParseLane(lane); err != nil {
		return TimerKey{}, err
	}
	if k.Slot, err = strconv.Atoi(slot); err != nil || k.Slot < 0 || k.Slot >= MaxTimerSlots || strconv.Itoa(k.Slot) != slot {
		return TimerKey{}, fmt.Errorf("%w: %q has slot %q", ErrSubject, subject, slot)
	}
	if err := errors.Join(ValidateTimerGroup(k.Group), ValidateTimerID(k.ID)); err != nil {
		return TimerKey{}, fmt.Errorf("%w: %q: %w", ErrSubject, subject, err)
	}
	return k, nil
}

// TimerGroupFilter selects the timers of a group.
func TimerGroupFilter(topic, group string) string {
	return tokenTimers + "." + topic + ".*." + group + ".*.*"
}
