package faults

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
)

// Service is what every numbered event says it comes from.
const Service = "faults"

// users are the lane keys: enough that every one of four lanes has some.
const users = 16

// playProducer writes numbered events until it is told to stop, and journals what it is told of each.
func playProducer(ctx context.Context, spec Spec, stop <-chan struct{}) error {
	w := spec.Writer
	j, err := OpenJournal(w.Journal)
	if err != nil {
		return err
	}
	policy, err := producer.ParsePolicy(w.Policy)
	if err != nil {
		return err
	}
	var p *producer.Producer
	err = patiently(ctx, func(ctx context.Context) (err error) {
		p, err = producer.Connect(ctx, spec.NATS, producer.Config{
			Topic: w.Topic, Service: Service, Policy: policy, BufferEvents: w.BufferEvents,
			Linger: cmp.Or(w.Linger, 100*time.Millisecond), AckTimeout: 2 * time.Second, Now: w.clock(),
			Hooks: producer.Hooks{OnError: func(err error) { note("%v", err) }},
		})
		return err
	})
	if err != nil {
		return err
	}
	say("ready")
	writing, cancel := context.WithCancel(ctx)
	go func() { <-stop; cancel() }()
	if err := w.write(writing, p, j); err != nil {
		return err
	}
	<-stop
	flush, release := context.WithTimeout(ctx, 5*time.Minute)
	defer release()
	err = errors.Join(p.Flush(flush), p.Close(flush), j.Close())
	stats := p.Stats()
	say("logged %d", stats.Logged)
	say("stored %d", stats.Stored)
	say("dropped %d", stats.DroppedTotal())
	say("resent %d", stats.Resent)
	note("%+v", stats)
	return err
}

// pace is how often the writer writes its share of a second.
const pace = 20 * time.Millisecond

func (w Writer) write(ctx context.Context, p *producer.Producer, j *Journal) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	share := max(1, w.Rate/int(time.Second/pace))
	attrs := []producer.Attr{schemas.String("endpoint", "/api/v1/things"), schemas.String("region", "eu-central-1")}
	for next := uint64(1); ; {
		for range share {
			n := next
			if err := j.Reserve(n); err != nil {
				return err
			}
			ev := producer.Event{
				Level: "info", Type: "numbered", UserID: "u-" + strconv.FormatUint(n/8%users, 10),
				Message: strconv.FormatUint(w.Number<<32|n, 10), Attrs: attrs,
			}
			switch err := w.put(ctx, p, ev, func(err error) { j.Ack(n, err) }); {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return fmt.Errorf("faults: number %d was refused: %w", n, err)
			}
			if next++; w.Events > 0 && next > uint64(w.Events) {
				say("written")
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// put hands an event over: by Submit, which tells what became of it, or, where a policy is tried, by Log, which does not.
func (w Writer) put(ctx context.Context, p *producer.Producer, ev producer.Event, done func(error)) error {
	if w.Policy != producer.Block.String() {
		p.Log(ev)
		return nil
	}
	return p.Submit(ctx, ev, done)
}

// clock is the writer's: the machine's, or one that begins elsewhere, or one that jumps.
func (w Writer) clock() func() time.Time {
	if w.From == 0 && w.Step == 0 {
		return nil
	}
	began := time.Now()
	return func() time.Time {
		now := time.Now()
		if w.From != 0 {
			now = time.Unix(0, w.From).Add(now.Sub(began))
		}
		if w.Step != 0 && int64(time.Since(began)/time.Second)%2 == 1 {
			now = now.Add(-w.Step)
		}
		return now
	}
}
