package registry

import (
	"errors"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

var (
	// ErrConflict: another process changed the entry first. Read it again.
	ErrConflict = errors.New("registry entry changed meanwhile")
	// ErrNoRegistry: the bucket or a stream does not exist on this server.
	ErrNoRegistry = errors.New("no Almanac on this NATS server")
	// ErrLost: SHARDS holds frames, and the registry does not know their topic: it was
	// lost or emptied. Nothing may be routed until it is rebuilt, or the topic
	// would begin a second life beside its first.
	ErrLost = errors.New("the registry is lost")
	// ErrNotFound: no such entry.
	ErrNotFound = errors.New("no such registry entry")
	// ErrBehind: ClickHouse or the streams were restored from a copy from before an erasure, and
	// it was not carried out again yet.
	ErrBehind = errors.New("a copy from before erasures was restored, and they are not carried out again yet")
	// ErrUnreadable: the entry's bytes are not what an entry of its key must be.
	ErrUnreadable = errors.New("the registry entry is not readable")
	// ErrLedgerFull: the ledger takes no more, or none so large.
	ErrLedgerFull = errors.New("the ledger is full")
)

// UnknownTopicError names a topic that is not declared, and those that are. It is a
// schemas.ErrUnknownTopic.
type UnknownTopicError struct {
	Name  string
	Known []string
	// Kind is that of the topics that were asked for; empty for any.
	Kind schemas.Kind
}

// Error says which topics there are, at most maxListedTopics of them, and how to declare one.
func (e *UnknownTopicError) Error() string {
	there := "; no topic is declared"
	near, begins := schemas.Nearest(e.Name, e.Known), "; d"
	if near != "" {
		near, begins = ", did you mean "+near+"?", " D"
	}
	switch more := len(e.Known) - maxListedTopics; {
	case more > 0:
		there = near + begins + fmt.Sprintf("eclared are %s and %d more", strings.Join(e.Known[:maxListedTopics], ", "), more)
	case len(e.Known) > 0:
		there = near + begins + "eclared: " + strings.Join(e.Known, ", ")
	}
	return fmt.Sprintf("%s %q%s. Declare it with `%s`", schemas.ErrUnknownTopic, e.Name, there, e.Kind.Declare(e.Name))
}

// Unwrap returns schemas.ErrUnknownTopic.
func (e *UnknownTopicError) Unwrap() error { return schemas.ErrUnknownTopic }

// UnreadableError is an entry whose bytes are not what an entry of its key must be. It is an
// ErrUnreadable.
type UnreadableError struct {
	Key string
	// Rev is the entry's revision, where it was read in a list; else 0.
	Rev uint64
	// Value is its bytes, likewise.
	Value []byte
	why   error
}

// Error says what is wrong with the entry, and what to do.
func (e *UnreadableError) Error() string {
	do := "run `almanac repair`, which restores entries of topics, months and shards, and removes those of which nothing else speaks"
	if strings.HasPrefix(e.Key, schemas.LedgerPrefix) {
		do = "what was erased is known there alone, so `almanac repair` leaves the topic alone: bring the entry back from a copy of the registry, or delete it if no erasure concerned the topic"
	}
	return fmt.Sprintf("%s: %s: %s; %s", ErrUnreadable, e.Key, e.why, do)
}

// Unwrap returns ErrUnreadable and what is wrong.
func (e *UnreadableError) Unwrap() []error { return []error{ErrUnreadable, e.why} }

// unreadable wraps what is wrong with an entry's bytes.
func unreadable(key string, err error) error { return &UnreadableError{Key: key, why: err} }

// maxListedTopics is how many names one line of a message bears.
const maxListedTopics = 20

// WrongKindError names a topic that is not of the kind that is asked for.
type WrongKindError struct {
	Name       string
	Kind, Want schemas.Kind
}

// Error says how to declare one of the kind.
func (e *WrongKindError) Error() string {
	return fmt.Sprintf("topic %q is of kind %s, and this is for topics of kind %s: declare one with `%s`", e.Name, e.Kind, e.Want, e.Want.Declare("NAME"))
}
