package sinks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/reconcile"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// task is work on one shard, as the schedule knew it.
type task struct {
	ref       schemas.ShardRef
	tail      uint64
	tailSeq   uint64
	head      position
	absent    uint64 // positions up to the head that ClickHouse has no rows of
	headKnown bool
	next      uint64
	prev      string // digest of the frame at the head; empty: not known
	// doubtful: the shard's end is to be compared with ClickHouse, in a watch of SHARDS.
	doubtful bool
	watch    int
}

// outcome is where the shard stands after the work.
type outcome struct {
	gone    bool // the shard is: its topic was removed
	id      schemas.Shard
	head    position
	absent  uint64
	counted bool // head's rows and bytes are known
	next    uint64
	prev    string
	began   time.Time     // when the insert did; zero without one
	took    time.Duration // the insert alone, with its answer
	sure    bool          // the shard's end was compared, in a watch of SHARDS
	watch   int
	err     error
	// outage: ClickHouse was away, which was reported for all shards at once, and
	// answers again.
	outage bool
}

// work brings one batch of the shard into ClickHouse.
func (s *Sinks) work(ctx context.Context, t task) outcome {
	reading, end := s.outages.Bound(ctx)
	defer end()
	err := s.cfg.DB.WaitEngine(reading)
	var o outcome
	if err == nil {
		o, err = s.advance(ctx, reading, t)
	}
	if lost := context.Cause(reading); err != nil && lost != nil {
		err = errors.Join(lost, err)
	}
	o.id, o.err, o.watch = t.ref.ID, err, t.watch
	o.sure = t.doubtful && err == nil
	switch tables.Classify(err) {
	case tables.Missing:
		s.forget(t.ref.Topic) // it is made again
	case tables.Moved:
		if errors.Is(err, tables.ErrReplaced) {
			s.forget(t.ref.Topic)
		}
	case tables.Unreachable, tables.Elsewhere:
		o.outage = s.cfg.DB.Returned(ctx, err)
	}
	return o
}

// advance reads from NATS until reading ends, which it does with the connection;
// an insert it has begun goes on all the same.
func (s *Sinks) advance(ctx, reading context.Context, t task) (outcome, error) {
	// What is read from SHARDS below is of the topic that has this table. Should it be removed meanwhile, and its name be
	// declared again, then the insert is refused, however long this process stood still.
	topic, table, err := s.table(reading, t.ref.Topic, 0)
	if err != nil {
		return outcome{}, err
	}
	if !t.headKnown {
		if t.head.pos, t.absent, err = s.head(reading, t.ref); err != nil {
			return outcome{}, err
		}
		if entry, err := s.cfg.Registry.Shard(reading, t.ref); err == nil && entry.Fork != nil {
			// What ClickHouse lacks of it goes to another shard (forkmove.go).
			return outcome{head: position{pos: max(t.tail, t.head.pos)}, absent: t.absent + t.tail - min(t.head.pos, t.tail)}, nil
		}
		t.next, t.prev = 0, ""
	}
	if t.doubtful {
		if err := s.compareEnd(reading, topic, t); err != nil {
			return outcome{}, err
		}
	}
	if t.head.pos >= t.tail {
		return outcome{head: t.head, absent: t.absent}, nil
	}
	if t.prev == "" && t.head.pos > 0 {
		if t.prev, err = s.checkHead(reading, topic, t); err != nil {
			return outcome{}, err
		}
	}
	if t.next == 0 {
		if t.next, err = streams.FindFrame(reading, s.js, t.ref.Subject(), t.head.pos+1, t.tailSeq); err != nil {
			return outcome{}, err
		}
	}
	l := limits{s.cfg.BatchRows, s.cfg.BatchBytes, tables.MaxRawBytes}
	erasures, err := s.erasedOf(reading, t.ref.Topic)
	if err != nil {
		return outcome{}, err
	}
	for {
		b, err := fetch(reading, s.js, t.ref, t.head.pos, t.tail, t.next, t.prev, l, erasures)
		if err != nil {
			return outcome{}, err
		}
		if b.schema > topic.Version {
			if topic, _, err = s.table(reading, t.ref.Topic, b.schema); err != nil {
				return outcome{}, err
			}
		}
		if cover := erasures.Covering(b.source, b.minTs, b.maxTs); len(cover) > 0 {
			if topic, _, err = s.table(ctx, t.ref.Topic, cover.Schema()); err != nil {
				return outcome{}, err
			}
			left, err := s.filterErased(ctx, topic, b, cover)
			if err != nil {
				return outcome{}, err
			}
			if left == 0 { // no row will carry these positions: the floor does
				s.cfg.Crash.at("sink.before-floor")
				if _, err := s.cfg.Registry.RaiseFloor(ctx, t.ref, b.end.pos); err != nil {
					return outcome{}, err
				}
				absent := t.absent + b.end.pos - t.head.pos
				return outcome{head: b.end, absent: absent, counted: true, next: b.lastSeq + 1, prev: b.digest}, nil
			}
		}
		weight := s.cfg.weight(b.rows, b.bytes)
		if err := s.limiter.take(ctx, weight); err != nil {
			return outcome{}, err
		}
		s.cfg.Crash.at("sink.before-insert")
		if now, err := s.erasedOf(reading, t.ref.Topic); err != nil || !now.Same(erasures) { // its turn may have come late
			s.limiter.done(weight)
			if err != nil {
				return outcome{}, err
			}
			erasures = now
			continue
		}
		began := time.Now()
		head, absent, err := s.insert(ctx, topic, table, t, b)
		took := time.Since(began)
		s.limiter.done(weight)
		switch {
		case tables.Classify(err) == tables.Overloaded && len(b.frames) > 1 && !errors.Is(err, tables.ErrNoSpace):
			l.rows = max(1, b.rows/2) // a slow link or little memory: half as much fits
			continue
		case err != nil:
			return outcome{}, err
		case head == b.end.pos:
			s.cfg.Hooks.stored(t.ref, b.rows, b.bytes, took)
			return outcome{head: b.end, absent: absent, counted: true, next: b.lastSeq + 1, prev: b.digest, began: began, took: took}, nil
		default: // another sink cut its batch elsewhere, or no row of the last frames was kept
			return outcome{head: position{pos: head}, absent: absent}, nil
		}
	}
}

// checkHead compares the frame at the head with what is stored at its position:
// were SHARDS rolled back and its positions given again, another frame would
// stand there. It returns the frame's digest, or "" when SHARDS no longer holds
// the frame.
func (s *Sinks) checkHead(ctx context.Context, topic *schemas.Topic, t task) (digest string, err error) {
	seq, err := streams.FindFrame(ctx, s.js, t.ref.Subject(), t.head.pos, t.tailSeq)
	if err != nil {
		return "", err
	}
	msg, err := streams.DecideNext(ctx, s.js, schemas.StreamShards, t.ref.Subject(), seq)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("sinks: position %d of %s: %w", t.head.pos, t.ref, err)
	}
	p, err := schemas.ParsePlaced(msg.Header)
	if err != nil {
		return "", fmt.Errorf("sinks: %s message %d: %w", t.ref, msg.Sequence, err)
	}
	if p.Pos != t.head.pos {
		return "", nil // purged
	}
	same, err := s.same(ctx, topic, t.ref, &p, msg.Data, true)
	if err != nil {
		return "", err
	}
	if !same {
		return "", s.forked(ctx, topic, t, fmt.Sprintf("position %d in %s is %s, and ClickHouse has other events there", t.head.pos, schemas.StreamShards, schemas.Digest(msg.Data)))
	}
	return schemas.Digest(msg.Data), nil
}

// isStored reports whether ClickHouse has a frame at its position, or what erasures left of it,
// which may be nothing.
func (s *Sinks) isStored(ctx context.Context, topic *schemas.Topic, ref schemas.ShardRef, p *schemas.Placed, payload []byte) (bool, error) {
	var err error
	if topic.Version < p.Schema {
		if topic, _, err = s.table(ctx, ref.Topic, p.Schema); err != nil {
			return false, err
		}
	}
	found, err := reconcile.Look(ctx, s.cfg.DB, topic, ref, p, payload, reconcile.Gone(ctx, s.cfg.Registry, ref))
	if err != nil || found == reconcile.Whole || found == reconcile.Partly {
		return err == nil, err
	}
	// Its rows may be gone on purpose, with the floor raised before.
	entry, err := s.cfg.Registry.Shard(ctx, ref)
	return err == nil && found == reconcile.Absent && entry.Floor >= p.Pos, nil
}

// insert stores the batch and returns the head as read back, and how far the table lies below.
func (s *Sinks) insert(ctx context.Context, topic *schemas.Topic, table string, t task, b *batch) (head, absent uint64, err error) {
	in := &tables.Insert{
		Topic: topic, Schema: b.schema, Month: t.ref.Month, Shard: t.ref.ID,
		Head: t.head.pos, Frames: b.frames, Absent: t.absent, Keep: b.keep, UUID: table,
	}
	var insertErr error
	head, err = tables.Follow(in.Head, func(attempt int) error {
		if attempt > 0 {
			s.cfg.Hooks.burnt(t.ref, in.Head, attempt-1)
		}
		in.Attempt = attempt
		insertCtx, cancel := context.WithTimeout(ctx, s.cfg.InsertTimeout)
		insertErr = s.cfg.DB.Insert(insertCtx, in)
		cancel()
		if insertErr != nil {
			s.cfg.Hooks.failed(t.ref, insertErr)
		}
		s.cfg.Crash.at("sink.after-insert")
		return insertErr
	}, func() (uint64, error) {
		head, rows, err := s.cfg.DB.HeadRows(ctx, t.ref)
		if err != nil {
			return 0, err
		}
		if head == b.end.pos && b.keep.SQL == "" && rows != b.end.rows && !s.erased(ctx, t.ref, head, b.end.rows, rows) {
			// Stored, but not whole, now or before. Going on loses nothing more; it must
			// be heard of at once, and verify names the positions.
			s.cfg.Hooks.fault(t.ref, fmt.Errorf("sinks: %s: %w: %d rows up to position %d, the frames brought %d; run `almanac verify %s`",
				t.ref, ErrUnverified, rows, head, b.end.rows, t.ref.Topic))
		}
		absent = 0
		if head < b.end.pos && (head > in.Head || insertErr == nil) { // stored, and erased since? Then the floor was raised before
			head, absent, err = s.head(ctx, t.ref)
		}
		return head, err
	})
	if errors.Is(err, tables.ErrConsumed) {
		err = fmt.Errorf("sinks: %s: %w", t.ref, err)
	}
	return head, absent, err
}

// head is the highest position that is stored: in the table, or stated by the
// registry because rows that carried it are gone on purpose. absent is how far the
// table lies below.
func (s *Sinks) head(ctx context.Context, ref schemas.ShardRef) (head, absent uint64, err error) {
	pos, rows, err := s.cfg.DB.HeadRows(ctx, ref)
	if err != nil {
		return 0, 0, err
	}
	entry, err := s.cfg.Registry.Shard(ctx, ref)
	switch {
	case errors.Is(err, registry.ErrNotFound) && pos == 0:
		return 0, 0, fmt.Errorf("sinks: %w: %s, whose frames are in %s and not in ClickHouse, may have been dropped by retention; run `almanac repair %s`",
			ErrUnknown, ref, schemas.StreamShards, ref.Topic)
	case err != nil && !errors.Is(err, registry.ErrNotFound):
		return 0, 0, err
	}
	if entry.Floor > pos && !entry.Gone() {
		lacks, err := s.cfg.Registry.LacksBelowFloor(ctx, &entry, pos, rows)
		if err != nil || lacks {
			return pos, 0, err
		}
	}
	head = entry.Head(pos)
	return head, head - pos, nil
}

// readyTable is a topic whose table is there.
type readyTable struct {
	topic *schemas.Topic
	uuid  string
}

// table is the topic's descriptor, of schema version atLeast or later, with its
// table made ready, and that table's UUID.
func (s *Sinks) table(ctx context.Context, name string, atLeast int) (*schemas.Topic, string, error) {
	s.mu.Lock()
	t := s.topics[name]
	s.mu.Unlock()
	if t.uuid != "" && t.topic.Version >= atLeast {
		return t.topic, t.uuid, nil
	}
	fresh, err := s.cfg.Registry.Topic(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if fresh.Version < atLeast {
		return nil, "", fmt.Errorf("sinks: %w: version %d of topic %q, the registry has %d", schemas.ErrFrameSchema, atLeast, name, fresh.Version)
	}
	if err := s.cfg.DB.Ensure(ctx, &fresh); err != nil {
		return nil, "", err
	}
	uuid, err := s.cfg.DB.UUID(ctx, name)
	if err != nil {
		return nil, "", err
	}
	s.ensureViews(ctx, &fresh)
	s.mu.Lock()
	s.topics[name] = readyTable{&fresh, uuid}
	s.mu.Unlock()
	return &fresh, uuid, nil
}

func (s *Sinks) forget(name string) {
	s.mu.Lock()
	delete(s.topics, name)
	s.mu.Unlock()
}
