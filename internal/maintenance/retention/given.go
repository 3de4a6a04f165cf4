package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// sweepGivenEvery is how often the parts of keyed requests are looked at.
const sweepGivenEvery = time.Minute

// sweepGiven purges what lanes keep of keyed requests (schemas.Given), where no message that is still to be routed
// can repeat it. Such a message was stored after the one of the checkpoint, and a part that SHARDS had
// schemas.GivenFor before that is older. What an idle lane keeps, ten minutes of it, stays.
func (j *Janitor) sweepGiven(ctx context.Context, now time.Time) error {
	if now.Sub(j.sweptGiven) < sweepGivenEvery {
		return nil
	}
	j.sweptGiven = now
	subjects, err := streams.Subjects(ctx, j.js, schemas.StreamShards, schemas.SubjectsGiven)
	if err != nil || len(subjects) == 0 {
		return err
	}
	routed, err := routedUpTo(ctx, j.js)
	if err != nil {
		return err
	}
	var failed []error
	for l, cp := range routed {
		subject := schemas.GivenSubject(l.topic, l.token)
		if subjects[subject] == 0 || cp.Stored == 0 {
			continue
		}
		oldest := time.Unix(0, cp.Stored).Add(-schemas.GivenFor)
		first, err := streams.DecideNext(ctx, j.js, schemas.StreamShards, subject, 1)
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && !first.Time.Before(oldest.Add(-sweepGivenEvery)) {
			continue // nothing, or little
		}
		var keepFrom uint64
		if err == nil {
			keepFrom, err = streams.FirstAfter(ctx, j.js, schemas.StreamShards, oldest)
		}
		if err == nil && keepFrom > first.Sequence {
			err = j.purge(ctx, j.shards, subject, keepFrom)
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("janitor: %s: %w", subject, err))
		}
		if errors.Is(err, streams.ErrCopying) {
			j.sweptGiven = time.Time{} // the others are not looked at yet
			break
		}
	}
	return errors.Join(failed...)
}
