package registry

import (
	"context"
	"errors"

	"github.com/almanac-events/almanac/schemas"
)

// Letters is what people did with a topic's dead letters: how many events of them
// they sent again or dropped, so that the proof still adds up when the letters are
// gone.
//
// A letter is settled in three steps, each of which may be done again: it is
// written here as open, it is taken out of SHARDS, it is counted and no longer
// open. The next process ends what was left open.
type Letters struct {
	Topic string `json:"topic"`
	// Retried and Dropped are events.
	Retried uint64       `json:"retried"`
	Dropped uint64       `json:"dropped"`
	Open    []OpenLetter `json:"open,omitempty"`

	rev uint64
}

// OpenLetter is a letter on its way out.
type OpenLetter struct {
	Seq uint64 `json:"seq"` // in SHARDS
	// At is when SHARDS stored it, unix ns: a sequence alone may have been given again.
	At     int64  `json:"at,omitempty"`
	Events uint64 `json:"events"`
	Drop   bool   `json:"drop,omitempty"` // or it was sent again
}

// MaxOpenLetters bounds the letters that are settled at once, at some 40 bytes
// each in the entry; one of which a part is dropped is there twice.
const MaxOpenLetters = 256

// Letters reads a topic's; one that was never written is empty.
func (r *Registry) Letters(ctx context.Context, topic string) (Letters, error) {
	l := Letters{Topic: topic}
	rev, err := r.get(ctx, schemas.LettersKey(topic), &l)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	l.rev = rev
	return l, err
}

// OpenLetters writes letters down as on their way out. None may be open already.
func (r *Registry) OpenLetters(ctx context.Context, l Letters, open []OpenLetter) (Letters, error) {
	l.Open = open
	return r.saveLetters(ctx, l)
}

// BookLetters counts the open letters, which are out of SHARDS.
func (r *Registry) BookLetters(ctx context.Context, l Letters) (Letters, error) {
	for _, o := range l.Open {
		if o.Drop {
			l.Dropped += o.Events
		} else {
			l.Retried += o.Events
		}
	}
	l.Open = nil
	return r.saveLetters(ctx, l)
}

func (r *Registry) saveLetters(ctx context.Context, l Letters) (Letters, error) {
	c := &change{key: schemas.LettersKey(l.Topic), rev: l.rev, v: &l}
	err := r.enter(ctx, []string{l.Topic}, c)
	l.rev = c.rev
	return l, err
}
