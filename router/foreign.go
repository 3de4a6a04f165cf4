package router

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/schemas/wire"
)

// Whatever reaches NATS can publish on the subjects of SHARDS and of the fronts. What none of
// Almanac's parts published there is foreign (wire.Foreign): one router of all keeps it as a dead
// letter of NoTopic, and takes it out of its stream. It reads the headers of each message once. A lane
// or a shard that ends with a foreign message stops until then, which takes seconds; others go on.
//
// A batch of SHARDS holds the letters and the checkpoint of the sweep. It says how far the stream was
// read (Source), how many letters there were (Dead), and which messages are to be taken out (Kept):
// a router that ends between the two steps leaves that to the next one.

// foreignStreams are those that are swept.
var foreignStreams = []string{schemas.StreamShards, schemas.StreamDocs, schemas.StreamTimers}

const (
	// maxForeign and maxForeignBytes bound the letters of one batch. The next one takes more.
	maxForeign      = 200
	maxForeignBytes = 4 << 20
	// foreignSaved is after how many messages a sweep that found nothing notes how far it read.
	foreignSaved = 50_000
	// foreignWhole bounds the messages of a stream that a process reads again at its start, in
	// case the stream was restored from a copy meanwhile.
	foreignWhole = 200_000
	// foreignRest is what a letter has room for beside its payload: its headers.
	foreignRest = 4 << 10
	// checkpointsEvery is how often the last checkpoint of each lane is looked at.
	checkpointsEvery = time.Minute
)

// foreignSweep is the sweep of one stream in this process.
type foreignSweep struct {
	stream, routed string
	cp             checkpoint.Checkpoint
	last           uint64 // sequence of the last message on routed
	upTo           uint64 // sequence in the stream that was read
	begun          bool
	looked         time.Time // at the checkpoints
}

// sweepForeign sweeps until ctx ends.
func (r *Router) sweepForeign(ctx context.Context) {
	sweeps, letters := map[string]*foreignSweep{}, letterSweep{}
	for range backoff.Ticks(ctx, r.cfg.Discover) {
		if !r.members.Owns("strays") {
			clear(sweeps) // another router goes on from the checkpoint
			letters = letterSweep{}
			continue
		}
		if err := r.takeOutLetters(ctx, &letters); err != nil && !errors.Is(err, streams.ErrCopying) && ctx.Err() == nil {
			r.cfg.Hooks.fault(schemas.NoTopic, schemas.StreamShards, err)
		}
		for _, stream := range foreignStreams {
			s := sweeps[stream]
			if s == nil {
				s = &foreignSweep{stream: stream, routed: schemas.RoutedSubject(schemas.NoTopic, stream)}
				sweeps[stream] = s
			}
			if err := r.foreign(ctx, s); err != nil && ctx.Err() == nil {
				r.cfg.Hooks.fault(schemas.NoTopic, stream, err)
				delete(sweeps, stream) // what was done is read again
			}
		}
	}
}

// foreign reads on in a stream and sets aside what is foreign.
func (r *Router) foreign(ctx context.Context, s *foreignSweep) error {
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	info, err := streams.Info(ctx, r.js, s.stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil // a front that was never used
	}
	if err != nil {
		return fmt.Errorf("router: %w", err)
	}
	if !s.begun {
		if err := r.beginForeign(ctx, s, info); err != nil {
			return err
		}
	}
	if info.State.LastSeq < s.upTo { // it lost its end
		s.upTo = 0
	}
	var found []uint64
	read := 0
	if info.State.LastSeq > s.upTo {
		lanes, err := r.laneSubjects(ctx, s.stream)
		if err != nil {
			return err
		}
		_, err = streams.Headers(ctx, r.js, s.stream, "", s.upTo+1, func(m *streams.Message) error {
			read++
			if foreign(s.stream, m, nil, lanes) != nil {
				found = append(found, m.Sequence)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("router: %w", err)
		}
	}
	if s.stream == schemas.StreamShards && time.Since(s.looked) >= checkpointsEvery {
		s.looked = time.Now()
		err := streams.EachCheckpoint(ctx, r.js, schemas.SubjectsRouted, func(cp *streams.Routed) error {
			if cp.Err != nil && cp.Seq <= info.State.LastSeq && cp.Seq <= s.upTo {
				found = append(found, cp.Seq)
				s.looked = time.Time{} // what lies below it may be foreign too
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("router: checkpoints: %w", err)
		}
	}
	if err := r.setAside(ctx, s, found); err != nil {
		return err
	}
	s.upTo = max(s.upTo, info.State.LastSeq)
	if s.upTo >= s.cp.Source+foreignSaved {
		return r.commitForeign(ctx, s, nil, s.upTo)
	}
	return nil
}

// beginForeign reads how far a sweep came, and ends what it began.
func (r *Router) beginForeign(ctx context.Context, s *foreignSweep, info *jetstream.StreamInfo) error {
	err := streams.Gather(ctx, r.js, schemas.StreamShards, s.routed, 1, nil, func(m *streams.Message) (bool, error) {
		if cp, err := checkpoint.Parse(m.Header, m.Data); err == nil { // else it is foreign itself
			s.cp = cp
		}
		s.last = m.Sequence
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("router: %s: %w", s.routed, err)
	}
	s.cp.Front, s.cp.Router = s.stream, r.members.Self()
	if err := r.takeOutForeign(ctx, s); err != nil {
		return err
	}
	s.upTo, s.begun = s.cp.Source, true
	if info.State.Msgs <= foreignWhole {
		s.upTo = 0
	}
	return nil
}

// laneSubjects reports of a stream's subject whether a router of a lane reads it, and so keeps what it
// cannot store as a dead letter of the topic.
func (r *Router) laneSubjects(ctx context.Context, stream string) (func(subject string) bool, error) {
	if stream == schemas.StreamShards {
		return nil, nil
	}
	list, err := r.cfg.Registry.Topics(ctx)
	if err != nil {
		return nil, err
	}
	lanes := map[string]int{}
	for i := range list {
		if list[i].Front() == stream {
			lanes[list[i].InFronts()] = list[i].Lanes
		}
	}
	return func(subject string) bool {
		token, ok := schemas.SourceLane(stream, subject)
		lane, err := schemas.ParseLane(token)
		return ok && err == nil && schemas.Indexed(subject) && lane < lanes[namedTopic(subject)]
	}, nil
}

// foreign returns why a message is none that Almanac publishes, or nil. Of what no lane keeps as a dead letter, since it
// says that it is not an event, and of locks, it goes by all headers.
func foreign(stream string, m *streams.Message, data []byte, inLane func(string) bool) error {
	err := wire.Foreign(stream, m.Subject, m.Header, data, inLane)
	if _, blank := m.Header[schemas.HeaderBlank]; err != nil || stream == schemas.StreamShards || blank && !inLane(m.Subject) {
		return err
	}
	if !schemas.OfFront(m.Subject) {
		_, err = document.ParseLock(m.Sequence, m.Time, m.Header)
		return err
	}
	if schemas.IsEvent(m.Header, m.Size) && inLane(m.Subject) || schemas.Replaces(m.Header) {
		return nil
	}
	if stream == schemas.StreamTimers {
		_, err = timer.Parse(m.Subject, m.Sequence, m.Header, nil)
	} else {
		_, err = document.Parse(m.Subject, m.Sequence, m.Header, nil, m.Size)
	}
	return err
}

// setAside keeps messages as dead letters and takes them out, some at a time.
func (r *Router) setAside(ctx context.Context, s *foreignSweep, found []uint64) error {
	var letters []*nats.Msg
	bytes := 0
	flush := func() error {
		if len(letters) == 0 {
			return nil
		}
		err := r.commitForeign(ctx, s, letters, s.cp.Source)
		letters, bytes = nil, 0
		if err != nil {
			return err
		}
		return r.takeOutForeign(ctx, s)
	}
	if len(found) == 0 {
		return nil
	}
	lanes, err := r.laneSubjects(ctx, s.stream)
	if err != nil {
		return err
	}
	for _, seq := range found {
		m, err := streams.DecideAt(ctx, r.js, s.stream, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // taken out meanwhile
		}
		if err != nil {
			return fmt.Errorf("router: message %d of %s: %w", seq, s.stream, err)
		}
		why := foreign(s.stream, m, m.Data, lanes)
		if why == nil {
			continue // the headers alone did not tell
		}
		letter := r.foreignLetter(s.stream, m, why)
		letters = append(letters, letter)
		s.cp.Kept = append(s.cp.Kept, checkpoint.Kept{Seq: m.Sequence, Stored: m.Time.UnixNano(), Events: 1})
		if bytes += len(letter.Data); len(letters) >= maxForeign || bytes >= maxForeignBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// foreignLetter is the dead letter of a foreign message.
func (r *Router) foreignLetter(stream string, m *streams.Message, why error) *nats.Msg {
	msg := nats.NewMsg(schemas.DeadSubject(schemas.NoTopic))
	detail := fmt.Sprintf("message %d of %s, stored %s, is not of Almanac: %v", m.Sequence, stream, m.Time.UTC().Format(time.RFC3339Nano), why)
	msg.Data = m.Data
	if most := int(r.js.Conn().MaxPayload()) - foreignRest; len(msg.Data) > most {
		msg.Data = msg.Data[:max(0, most)]
		detail = fmt.Sprintf("the first %d of %d bytes; %s", len(msg.Data), len(m.Data), detail)
	}
	msg.Header.Set(schemas.HeaderRows, "1")
	msg.Header.Set(schemas.HeaderReason, wire.ReasonForeign)
	msg.Header.Set(schemas.HeaderDetail, headerText(detail))
	msg.Header.Set(schemas.HeaderSourceSubject, headerText(m.Subject))
	return msg
}

// commitForeign stores letters, and a checkpoint that counts them and names what is to be taken out.
func (r *Router) commitForeign(ctx context.Context, s *foreignSweep, letters []*nats.Msg, upTo uint64) error {
	next := s.cp
	next.Source, next.Dead = upTo, s.cp.Dead+uint64(len(letters))
	data, err := json.Marshal(&next)
	if err != nil {
		return err
	}
	ck := nats.NewMsg(s.routed)
	ck.Data = data
	ck.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(s.last, 10))
	r.cfg.Crash.at("router.before-foreign")
	last, _, err := r.group.send(ctx, append(letters, ck))
	if err != nil {
		return err
	}
	r.cfg.Crash.at("router.after-foreign")
	if len(letters) > 0 {
		r.cfg.Hooks.dead(schemas.NoTopic, wire.ReasonForeign, len(letters), fmt.Errorf("%d messages of %s are not of Almanac", len(letters), s.stream))
	}
	s.cp, s.last = next, last
	return nil
}

// takeOutForeign removes what the checkpoint says is kept.
func (r *Router) takeOutForeign(ctx context.Context, s *foreignSweep) error {
	if len(s.cp.Kept) == 0 {
		return nil
	}
	stream, err := streams.Open(ctx, r.js, s.stream)
	if err != nil {
		return fmt.Errorf("router: %w", err)
	}
	for _, k := range s.cp.Kept {
		m, err := streams.DecideAt(ctx, r.js, s.stream, k.Seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) || err == nil && m.Time.UnixNano() != k.Stored {
			continue // a stream that lost its end gave the number again
		}
		if err == nil {
			err = streams.Delete(ctx, r.js, stream, k.Seq, false, streams.Tell) // a lane whose checkpoint it hides waits for that
		}
		if err != nil {
			return fmt.Errorf("router: message %d of %s: %w", k.Seq, s.stream, err)
		}
	}
	s.cp.Kept = nil
	return nil
}
