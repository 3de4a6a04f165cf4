package retention

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// blankEvery is how often lanes are looked at; retention counts days.
const blankEvery = time.Hour

// publishBlanks lets go of the last message of lanes that fell silent. EVENTS keeps the
// message a checkpoint names, so that a rollback shows; once its events are past
// the topic's retention a blank message is published after it, the router's
// checkpoint moves on to that, and the old one is purged like any other.
func (j *Janitor) publishBlanks(ctx context.Context, topics []registry.TopicShards, now time.Time) error {
	if now.Sub(j.blankedAt) < blankEvery {
		return nil
	}
	var failed []error
	for i := range topics {
		t := &topics[i].Topic
		days := t.ShortestDays()
		if days > 0 {
			failed = append(failed, j.publishBlanksOf(ctx, t, days, now))
		}
	}
	err := errors.Join(failed...)
	if err == nil {
		j.blankedAt = now
	}
	return err
}

// publishBlanksOf publishes what the topic's lanes need. Of two janitors both may publish one:
// a blank has no events, and the later one takes the place of the earlier.
func (j *Janitor) publishBlanksOf(ctx context.Context, t *schemas.Topic, days int, now time.Time) error {
	return streams.EachCheckpoint(ctx, j.js, schemas.RoutedFilter(t.Name), func(cp *streams.Routed) error {
		if cp.Err != nil || cp.Source == 0 || cp.Front != "" {
			return nil // no lane's: nothing to let go
		}
		msg, err := streams.DecideAt(ctx, j.js, schemas.StreamEvents, cp.Source)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil // the router says what is wrong
		}
		if err != nil {
			return fmt.Errorf("janitor: %s message %d: %w", schemas.StreamEvents, cp.Source, err)
		}
		if cp.Stored != 0 && msg.Time.UnixNano() != cp.Stored {
			return nil // another message by now: likewise
		}
		if schemas.IsBlank(msg.Header, msg.Data) || !now.After(youngest(msg).AddDate(0, 0, days)) {
			return nil
		}
		if _, _, err := schemas.ParseEventsSubject(msg.Subject, t); err != nil {
			return nil // a stray, which is taken out whole
		}
		blank := nats.NewMsg(msg.Subject)
		blank.Header.Set(schemas.HeaderBlank, strconv.Itoa(days))
		if _, err := streams.Once(ctx, func(ctx context.Context) (*jetstream.PubAck, error) { return j.js.PublishMsg(ctx, blank) }); err != nil {
			return fmt.Errorf("janitor: letting go of message %d on %s: %w", cp.Source, msg.Subject, err)
		}
		return nil
	})
}

// youngest is how young the events of a message of EVENTS are: as its headers say,
// or as it was stored.
func youngest(msg *streams.Message) time.Time {
	if f, err := schemas.ParseFrame(msg.Header); err == nil {
		return time.Unix(0, f.MaxTs)
	}
	return msg.Time
}
