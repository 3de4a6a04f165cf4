package router

import (
	"cmp"
	"context"

	"errors"

	"strconv"
	"sync/atomic"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// lane is one run of one lane: everything it knows it read from the servers
// since the run began, and any error throws it away.
type lane struct {
	cfg    *Config
	js     jetstream.JetStream
	shards jetstream.Stream
	self   string
	// group, entries, pace and copies are the router's, for all its lanes.
	group   *group
	entries queue
	pace    *pace
	copies  *copies

	source
	sweeping  bool // see unroutable.go
	evaluator evaluator
	cp        checkpoint.Checkpoint
	ckSeq     uint64
	given     *schemas.Given // nil: the lane does not keep parts of keyed requests
	active    map[schemas.Month]*shardState
	// past is the registry's copy of the checkpoint where SHARDS lost its end and what that
	// held is routed again. Until it is, the copy stays, and shards that end below where
	// they did are not left.
	past checkpoint.Checkpoint
	last commit
	// earlier are the frames of the batch that are of an earlier topic of the name.
	earlier []late
	unread  uint64 // pending messages that this run found it cannot read
	// started is set once start has ended.
	started *atomic.Bool
}

// source is where a lane reads and writes.
type source struct {
	topic, token string // as in subjects
	front        string // the stream, where it is not EVENTS
	filter       string // in the stream
	only         string // when set, the one subject of the filter that is meant
	routed, dead string // subjects in SHARDS
}

// laneSource is a topic's lane, over all months, in a front or, where that is empty, in EVENTS.
func laneSource(t *schemas.Topic, front, token string) source {
	return source{
		topic: t.Name, token: token, front: front, filter: t.SourceFilter(front, token),
		routed: schemas.RoutedSubject(t.Name, token), dead: schemas.DeadSubject(t.Name),
	}
}

// stream is where the lane reads.
func (s *source) stream() string { return cmp.Or(s.front, schemas.StreamEvents) }

// ahead bounds the messages that the lane holds before they are routed, and gather those
// of one batch: records are small, and many become one frame.
func (s *source) ahead(most int) (ahead, gather int) {
	if s.front == "" {
		return readAhead, most
	}
	return recordsAhead, max(most, runRows)
}

// maxKnownShards bounds the active shards a lane remembers from batch to batch,
// one a month; an old month is read again when it is needed.
const maxKnownShards = 512

// run routes the lane until ctx ends or something is not as expected.
func (l *lane) run(ctx context.Context) error {
	if err := l.start(ctx); err != nil {
		return err
	}
	l.started.Store(true)
	ahead, most := l.ahead(l.cfg.MaxBatchMessages)
	feed, err := startTailer(ctx, l.js, l.stream(), l.filter, l.cp.Source+1, ahead)
	if err != nil {
		return err
	}
	defer feed.stop()
	busy := 1 // lanes, at the last batch
	for {
		due := beat(l.pace.origin, feed.gathered, linger(l.cfg.Linger, l.last, busy))
		msgs, err := feed.gather(ctx, due, most, l.cfg.MaxBatchBytes)
		if err != nil {
			return err
		}
		if len(msgs) == 0 {
			err = l.countUnread(ctx, feed.pending)
		} else {
			busy = l.pace.batch(laneID{l.topic, l.token}, feed.gathered)
			err = l.route(ctx, msgs)
		}
		if err != nil {
			return err
		}
	}
}

// start loads the checkpoint, fences older routers off, and seals what earlier
// rotations left.
func (l *lane) start(ctx context.Context) error {
	var err error
	if l.cp, l.ckSeq, err = loadCheckpoint(ctx, l.js, l.routed); err != nil {
		return err
	}
	if l.ckSeq == 0 {
		if err := l.checkNew(ctx); err != nil {
			return err
		}
	}
	if err := l.takeForks(ctx); err != nil {
		return err
	}
	if err := l.forgotten(ctx); err != nil {
		return err
	}
	if err := l.fit(ctx); err != nil {
		return err
	}
	if err := l.findKept(ctx); err != nil {
		return err
	}
	l.cp.Front, l.cp.Router, l.cp.Epoch = l.front, l.self, l.cp.Epoch+1
	if err := l.commit(ctx, newBatch()); err != nil {
		return err
	}
	if l.evaluator.topic == nil {
		return nil
	}
	if l.front == "" {
		if err := l.loadGiven(ctx); err != nil {
			return err
		}
	}
	heads, err := l.cfg.Registry.Heads(ctx, l.topic)
	if err != nil {
		return err
	}
	for _, h := range heads {
		if err := l.seal(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// seal seals the lane's retired shards of a month. The lane is fenced: no other
// router can add to them any more.
func (l *lane) seal(ctx context.Context, h registry.Head) error {
	for id, n := range h.Retired {
		if strconv.Itoa(n) != l.token {
			continue
		}
		t, err := l.tailOf(ctx, registry.Shard{Topic: l.topic, Month: h.Month, ID: id})
		if err != nil {
			return err
		}
		if t, err = l.endOf(ctx, h.Month, id, t); err != nil {
			return err
		}
		l.cfg.Crash.at("router.before-seal")
		if err := l.cfg.Registry.Seal(ctx, schemas.ShardRef{Topic: l.topic, Month: h.Month, ID: id}, registry.Point{Era: t.era, Seq: t.source}, t.pos, t.rows, t.bytes); err != nil {
			return err
		}
		l.cfg.Crash.at("router.after-seal")
		delete(l.cp.Tails, id)
	}
	return nil
}

// route deals with messages in one atomic batch, or in several when bare JSON
// among them became many frames and dead letters.
func (l *lane) route(ctx context.Context, msgs []message) error {
	for len(msgs) > 0 {
		n, err := l.routeSome(ctx, msgs)
		if err != nil {
			return err
		}
		msgs = msgs[n:]
	}
	return nil
}

// routeSome deals with the first messages of msgs, as many as fit one atomic
// batch, and says how many they were. A message that must leave a shard which the
// batch adds to waits for the next one: were a full shard left before its last
// frames are committed, a crash in between would leave it behind half full.
func (l *lane) routeSome(ctx context.Context, msgs []message) (int, error) {
	if len(l.active) > maxKnownShards {
		clear(l.active) // never while a batch is open: its tails are only here
	}
	if l.evaluator.topic == nil { // was it declared before these were published?
		t, err := l.cfg.Registry.Topic(ctx, l.topic)
		if err == nil {
			l.evaluator.topic = &t
		} else if schemas.Reason(err) == "" {
			return 0, err
		}
	}
	b := newBatch()
	rotated := map[schemas.Month]bool{}
	events, repeated := l.cp.Rows, l.cp.RepeatedRows
	var letters []func() // told once they are committed
	done := 0
	for n := 0; done < len(msgs) && len(b.msgs) < l.cfg.MaxBatchMessages; done += n {
		var j evaluated
		var m *message
		var err error
		before := len(b.msgs)
		if j, m, n, err = l.next(ctx, msgs[done:]); err != nil {
			return 0, err
		}
		if len(j.frames) > 0 {
			s, reason, err := l.shardFor(ctx, b, &j, m.stored)
			if err != nil {
				return 0, err
			}
			if reason != "" && b.touched[s.entry.ID] != nil {
				break
			}
			if reason != "" {
				if s, err = l.rotate(ctx, s, reason, m.stored); err != nil {
					return 0, err
				}
				rotated[j.month] = true
			}
			for _, f := range j.frames {
				b.frame(s, f, m, j.first, l.cp.Era)
				l.cp.Frames++
				l.cp.Rows += uint64(f.Rows)
				l.cp.Windows = checkpoint.Windows(l.cp.Windows).Take(f.Frame, m.seq)
			}
		}
		b.take(l, m, &j)
		if j.refused != nil {
			l.cp.Windows = checkpoint.Windows(l.cp.Windows).TakeRefused(*j.refused, m.seq)
		}
		l.cp.Dead += uint64(j.kept)
		for _, d := range j.dead {
			if events, kept := l.cp.Keeps(m.source(), lineList(d.lines)); kept {
				l.cp.Dead += uint64(events)
				continue
			}
			reason := reasonOf(d.err)
			b.dead(l.dead, m, d, reason)
			l.cp.Dead += uint64(d.events)
			letters = append(letters, func() { l.cfg.Hooks.dead(l.topic, reason, d.events, d.err) })
		}
		if j.repeated {
			l.cp.RepeatedFrames++
			l.cp.RepeatedRows += uint64(j.rows)
		}
		if l.front == "" && len(b.msgs) == before && !j.elsewhere {
			l.cp.PassSilent(checkpoint.Silent{Seq: m.seq, Stored: m.stored.UnixNano()})
		}
	}
	last := &msgs[done-1]
	l.cp.Source, l.cp.Digest, l.cp.Stored, l.cp.At = last.seq, checkpoint.SourceDigest(last.data), last.stored.UnixNano(), 0
	if l.sweeping || l.front != "" {
		l.cp.Digest = "" // the message is taken out, or replaced by a stub later
	}
	l.cp.Pass()
	if err := l.widen(ctx, b, last.stored); err != nil {
		return 0, err
	}
	for _, t := range b.touched {
		s := t.state
		l.cp.Remember(s.entry.ID, checkpoint.Tail{Pos: s.tail.pos, Digest: s.tail.digest, Rows: s.tail.rows, Bytes: s.tail.bytes, Source: last.seq, IDs: s.tail.ids})
	}
	if err := l.countEarlier(ctx); err != nil {
		return 0, err
	}
	l.cfg.Crash.at("router.before-batch")
	if err := l.commit(ctx, b); err != nil {
		return 0, err
	}
	l.cfg.Crash.at("router.after-batch")
	l.cfg.Hooks.routed(l.topic, l.token, Batch{Messages: done, Bytes: b.bytes, Events: l.cp.Rows - events, Repeated: l.cp.RepeatedRows - repeated})
	for _, tell := range letters {
		tell()
	}
	for m := range rotated {
		h, err := l.cfg.Registry.Head(ctx, l.topic, m)
		if err != nil {
			return 0, err
		}
		if err := l.seal(ctx, h); err != nil {
			return 0, err
		}
	}
	return done, nil
}

// next judges the first messages of msgs that go together: one, or a run of records. It
// says how many they are, and which stands for all of them.
func (l *lane) next(ctx context.Context, msgs []message) (evaluated, *message, int, error) {
	if l.front == "" {
		j, err := l.decide(ctx, &msgs[0])
		return j, &msgs[0], 1, err
	}
	lane, err := schemas.ParseLane(l.token)
	if err != nil {
		return evaluated{}, nil, 0, err
	}
	if len(l.cp.StoredRun) > 0 {
		for i := range msgs {
			msgs[i].isStored = l.cp.StoredFrames(msgs[i].source(), 1) > 0
		}
	}
	j, n := l.evaluator.run(msgs, lane)
	if j.last != nil {
		return j, j.last, n, nil
	}
	return j, &msgs[n-1], n, nil
}

// decide judges a message, reading the topic again when the frame was made under
// a newer schema than this router knows, or would be refused by a retention that
// may have been lengthened since.
//
// Of a message that a repair found stored only the dead letters are routed: which of its
// frames came before does not matter then. The windows take them, so that they are known
// when they come again.
func (l *lane) decide(ctx context.Context, m *message) (evaluated, error) {
	if !l.sweeping && !schemas.Indexed(m.subject) {
		return evaluated{elsewhere: true}, nil // given by mistake: a sweep deals with it (hidden.go)
	}
	if l.isEarlier(m) {
		l.earlier = append(l.earlier, lateOf(m.header, m.seq, m.stored))
		return evaluated{}, nil
	}
	src := m.source()
	if events, kept := l.cp.Keeps(src, ""); kept {
		return evaluated{kept: events, refused: refusedFrame(m, nil)}, nil
	}
	if l.cp.StoredFrames(src, 1) > 0 {
		j := l.evaluator.message(m, nil)
		n := l.cp.StoredFrames(src, len(j.frames))
		for i := range j.frames[:n] {
			if f := j.frames[i].Frame; checkpoint.Windows(l.cp.Windows).Check(f) == checkpoint.Fresh {
				l.cp.Windows = checkpoint.Windows(l.cp.Windows).Take(f, m.seq)
			}
		}
		j.frames, j.isStored = j.frames[n:], n > 0
		return j, nil
	}
	if j, ok := l.repeats(m); ok {
		return j, nil
	}
	j := l.evaluator.message(m, l.cp.Windows)
	if len(j.dead) == 0 || !errors.Is(j.dead[0].err, schemas.ErrFrameSchema) && !errors.Is(j.dead[0].err, schemas.ErrPastRetention) {
		return j, nil
	}
	t, err := l.cfg.Registry.Topic(ctx, l.topic)
	if err != nil {
		return j, err
	}
	l.evaluator.topic = &t
	return l.evaluator.message(m, l.cp.Windows), nil
}
