package deadletters

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Discard drops letters of a topic for good, at most registry.MaxOpenLetters: they
// leave SHARDS, overwritten on disk, and are booked as dropped.
func (d *Letters) Discard(ctx context.Context, topic string, these []registry.OpenLetter) error {
	if len(these) == 0 {
		return nil
	}
	_, err := d.open(ctx, topic, these)
	return err
}

// open writes letters down as open, takes them out and counts them. Of two processes that
// have the same letter one counts it. The other reads again, and goes on with the letters
// that SHARDS still has. It returns the sequences of those that the other took.
//
// The entry is read before SHARDS and written if it is still the same: a letter that is
// there then is counted by no other process.
func (d *Letters) open(ctx context.Context, topic string, these []registry.OpenLetter) (taken map[uint64]bool, err error) {
	taken = map[uint64]bool{}
	for {
		l, err := d.finish(ctx, topic)
		if err != nil {
			return taken, err
		}
		var left []registry.OpenLetter
		for _, o := range these {
			there, err := d.isLetter(ctx, topic, o)
			switch {
			case err != nil:
				return taken, err
			case there:
				left = append(left, o)
			default:
				taken[o.Seq] = true
			}
		}
		if these = left; len(these) == 0 {
			return taken, nil
		}
		l, err = d.reg.OpenLetters(ctx, l, these)
		if errors.Is(err, registry.ErrConflict) {
			continue
		}
		if err == nil {
			err = d.remove(ctx, l)
		}
		if errors.Is(err, registry.ErrConflict) { // they were open: who met them counted them
			_, err = d.finish(ctx, topic)
		}
		return taken, err
	}
}

// finish ends what another process left open, or is about to end itself, and returns the
// entry without any.
func (d *Letters) finish(ctx context.Context, topic string) (registry.Letters, error) {
	for {
		l, err := d.reg.Letters(ctx, topic)
		if err != nil || len(l.Open) == 0 {
			return l, err
		}
		if err := d.remove(ctx, l); err != nil && !errors.Is(err, registry.ErrConflict) {
			return l, err
		}
	}
}

// remove takes the open letters out of SHARDS and counts them. Of those that are
// dropped nothing is to stay, also on disk.
func (d *Letters) remove(ctx context.Context, l registry.Letters) error {
	for _, o := range l.Open {
		there, err := d.isLetter(ctx, l.Topic, o)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		if err := streams.Delete(ctx, d.js, d.shards, o.Seq, o.Drop, streams.Refuse); err != nil {
			return fmt.Errorf("letters: taking letter %d out: %w", o.Seq, err)
		}
	}
	_, err := d.reg.BookLetters(ctx, l)
	return err
}

// isLetter reports whether SHARDS still has an open letter. When it lost its end after the
// letter was opened, it may have another message under the sequence, a frame even: the
// letter is gone then, and that one stays.
func (d *Letters) isLetter(ctx context.Context, topic string, o registry.OpenLetter) (bool, error) {
	msg, err := streams.DecideAt(ctx, d.js, schemas.StreamShards, o.Seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("letters: letter %d: %w", o.Seq, err)
	}
	return msg.Subject == schemas.DeadSubject(topic) && (o.At == 0 || o.At == msg.Time.UnixNano()), nil
}
