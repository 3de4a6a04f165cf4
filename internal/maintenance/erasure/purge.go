package erasure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// Purge takes the messages that hold events of an erasure out of the streams,
// overwriting them on disk, without waiting for the janitor. What shared a frame
// with such an event goes from the stream with it and stays in ClickHouse: the
// erasure is at its end, so it is stored.
//
// The positions, and the messages of EVENTS they came from, are written into the shard's erasure record before they go, so that
// neither a gap in SHARDS nor a cut of EVENTS is taken for a loss. The last frame of a shard that may grow stays until
// the next follows it, and so does the last message of a lane in EVENTS: both are
// state.
func (x *Eraser) Purge(ctx context.Context, topic, id string) (ledger.Erasure, error) {
	e, err := x.cfg.Registry.Erasure(ctx, topic, id)
	if err != nil {
		return e, err
	}
	if e.State != ledger.Erased || e.Redacted {
		return e, fmt.Errorf("%w: erasure %s is %s, only what is erased, and not redacted, can be purged", ErrRequest, id, e.State)
	}
	t, err := x.cfg.Registry.Topic(ctx, topic)
	if err == nil {
		err = outlive(ctx, &e)
	}
	if err == nil {
		err = x.awaitCopy(ctx, &e)
	}
	if err != nil {
		return e, err
	}
	all, err := x.cfg.Registry.Ledger(ctx, topic)
	if err != nil {
		return e, err
	}
	settling := all.Only(ledger.Waiting)
	sum := ledger.Purge{At: time.Now().UTC()}
	shards, err := x.cfg.Registry.Shards(ctx, topic, 0)
	if err != nil {
		return e, err
	}
	for i := range shards {
		if err := x.purgeShard(ctx, &e, &t, &shards[i], settling, &sum); err != nil {
			return e, err
		}
	}
	if err := errors.Join(x.purgeEvents(ctx, &e, &t, &sum), x.purgeDead(ctx, &e, &t, &sum)); err != nil {
		return e, err
	}
	return x.cfg.Registry.AmendErasure(ctx, topic, id, func(e *ledger.Erasure) bool {
		all := sum
		if old := e.Purged; old != nil {
			all.Frames, all.Events, all.Dead = sum.Frames+old.Frames, sum.Events+old.Events, sum.Dead+old.Dead
			all.Erased, all.Company = sum.Erased+old.Erased, sum.Company+old.Company
		}
		e.Purged = &all
		return true
	})
}

// awaitCopy waits until no backup is under way: it may have tables from before what shares frames with the erasure's events was stored.
// One that begins later has them. Where it begins after this, a removal that is refused says so.
func (x *Eraser) awaitCopy(ctx context.Context, e *ledger.Erasure) error {
	until, cancel := context.WithTimeout(ctx, x.cfg.Within)
	defer cancel()
	for {
		err := streams.MayTake(ctx, x.js)
		if !errors.Is(err, streams.ErrCopying) {
			return err
		}
		x.progress(Progress{State: e.State, Copying: true})
		if waited := backoff.Sleep(until, waitStep); ctx.Err() != nil {
			return ctx.Err()
		} else if waited != nil {
			return fmt.Errorf("erase: %s is erased and not purged: %w; `almanac erase resume %s --purge` purges it then", e.ID, err, e.ID)
		}
	}
}

func (x *Eraser) purgeShard(ctx context.Context, e *ledger.Erasure, t *schemas.Topic, s *registry.Shard, settling ledger.Erasures, sum *ledger.Purge) error {
	if s.Gone() {
		return nil
	}
	tail, has, err := x.tail(ctx, s)
	if err != nil || !has {
		return err
	}
	head, gone, err := x.whole(ctx, s, tail)
	if err != nil || gone {
		return err
	}
	if err := Pin(ctx, x.cfg.Registry, s.Ref(), settling); err != nil {
		return err
	}
	return x.hits(ctx, e, t, schemas.StreamShards, tail.subject, inShard(e, head), func(found []hit) error {
		var positions []uint64
		var from []checkpoint.Silent
		for _, h := range found {
			p, err := schemas.ParsePlaced(h.msg.Header)
			if err != nil || h.msg.Sequence == tail.Seq {
				continue
			}
			if positions = append(positions, p.Pos); p.SourceFirst == 0 { // a front keeps its end by itself
				from = append(from, checkpoint.Silent{Seq: p.SourceSeq, Stored: p.SourceTime})
			}
		}
		if err := x.stillWhole(ctx, e, s, tail, head, len(found)); err != nil { // what is not taken is not noted either
			return err
		}
		if err := x.note(ctx, s, positions, from); err != nil {
			return err
		}
		x.crash("erase.before-purge")
		if err := x.stillWhole(ctx, e, s, tail, head, len(found)); err != nil {
			return err
		}
		for _, h := range found {
			if h.msg.Sequence == tail.Seq {
				cleared, err := x.clearTail(ctx, s, tail, h.msg)
				if err != nil {
					return err
				}
				if !cleared {
					continue
				}
			}
			if err := streams.Delete(ctx, x.js, x.shards, h.msg.Sequence, true, streams.Refuse); err != nil {
				return fmt.Errorf("erase: %w", err)
			}
			sum.Frames++
			sum.Erased += h.matched
			sum.Company += uint64(h.frame.Rows) - h.matched
		}
		return nil
	})
}

// stillWhole looks again before so many frames go, for a purge takes minutes: where ClickHouse was restored from an older copy since its
// head was looked at, the frames above are all there is of some events.
func (x *Eraser) stillWhole(ctx context.Context, e *ledger.Erasure, s *registry.Shard, began end, head uint64, frames int) error {
	if frames == 0 {
		return nil
	}
	tail, has, err := x.tail(ctx, s)
	if err != nil {
		return err
	}
	entry, err := x.cfg.Registry.Shard(ctx, s.Ref())
	if err != nil || entry.Gone() {
		return err // retention dropped it meanwhile, with its frames
	}
	if !has || tail.Seq < began.Seq {
		return fmt.Errorf("%w: %s ended at sequence %d when its purge began, and does at %d: %s was restored from an older copy meanwhile, and its sequences may be of other frames now. No more are taken; `almanac verify %s` says what is missing, `almanac repair %s` brings it back, and `almanac erase resume %s --purge` goes on then",
			ErrUnstored, s.Name(), began.Seq, tail.Seq, schemas.StreamShards, e.Topic, e.Topic, e.ID)
	}
	now, gone, err := x.whole(ctx, s, tail)
	if err == nil && !gone && now < head {
		err = fmt.Errorf("%w: %s was stored up to position %d when its purge began, and is up to %d: ClickHouse was restored from an older copy meanwhile. No more of its frames are taken; once sinks have stored them again, `almanac erase resume %s --purge` goes on",
			ErrUnstored, s.Name(), head, now, e.ID)
	}
	return err
}

// whole is the shard's head, if ClickHouse has every row up to it that no erasure
// took. Otherwise, after it was restored from an older copy say, the frames are all
// there is of some events, and of others than the erasure's. gone: retention drops the shard, rows and frames, so nothing of it adds up.
func (x *Eraser) whole(ctx context.Context, s *registry.Shard, tail end) (head uint64, gone bool, err error) {
	if head, err = x.wholeUpTo(ctx, s, tail); err == nil {
		return head, false, nil
	}
	now, lost := x.cfg.Registry.Shard(ctx, s.Ref()) // it is marked before anything of it goes
	if lost == nil && now.Gone() {
		return 0, true, nil
	}
	return 0, false, err
}

// wholeUpTo is whole of a shard that retention leaves alone.
func (x *Eraser) wholeUpTo(ctx context.Context, s *registry.Shard, tail end) (head uint64, err error) {
	x.crash("erase.before-rows")
	before, err := x.cfg.Registry.ErasureRecord(ctx, s.Ref())
	if err != nil {
		return 0, err
	}
	pos, rows, err := x.cfg.DB.HeadRows(ctx, s.Ref())
	if err != nil {
		return 0, err
	}
	after, err := x.cfg.Registry.ErasureRecord(ctx, s.Ref()) // an erasure may be under way
	if err != nil {
		return 0, err
	}
	entry, err := x.cfg.Registry.Shard(ctx, s.Ref()) // after the rows: its floor is raised before they go
	if err != nil {
		return 0, err
	}
	if head = entry.Head(pos); head == 0 {
		return 0, nil
	}
	if head > tail.Pos { // a frame came since the tail was read
		if now, has, err := x.tail(ctx, s); err != nil {
			return 0, err
		} else if has && now.Seq > tail.Seq {
			tail = now
		}
	}
	brought, known := tail.ShardRows, tail.Pos == head
	if head < tail.Pos {
		seq, err := streams.FindFrame(ctx, x.js, tail.subject, head, tail.Seq)
		if err != nil {
			return 0, err
		}
		p, err := streams.FrameFrom(ctx, x.js, tail.subject, seq)
		if err != nil {
			return 0, err
		}
		if brought, known = p.ShardRows, p.Pos == head; p.Pos == head+1 {
			brought, known = p.ShardRows-uint64(p.Rows), true
		}
	}
	least, _ := before.GoneUpTo(head)
	_, most := after.GoneUpTo(head)
	if !known || rows+least > brought || rows+most < brought {
		return 0, fmt.Errorf("%w: %s has %d rows up to position %d, its frames brought %d and erasures took %d; run `almanac verify %s` before anything is purged",
			ErrUnstored, s.Name(), rows, head, brought, most, s.Topic)
	}
	return head, nil
}

// note writes positions into the shard's erasure record that are about to leave SHARDS, and the messages they came from.
func (x *Eraser) note(ctx context.Context, s *registry.Shard, positions []uint64, from []checkpoint.Silent) error {
	if len(positions) == 0 {
		return nil
	}
	full := false
	_, err := x.cfg.Registry.AmendErasureRecord(ctx, s.Ref(), func(t *ledger.ErasureRecord) bool {
		t.AddPurged(positions...)
		t.AddSilent(from...)
		full = len(t.Purged) > ledger.MaxSpans
		return !full
	})
	if full {
		return fmt.Errorf("%w: %s would have more than %d gaps in %s; the janitor takes the rest", ErrRequest, s.Name(), ledger.MaxSpans, schemas.StreamShards)
	}
	return err
}

// clearTail puts a mark behind the last frame of a shard that no frame follows any
// more: its headers without its events, so that its end is known. It says whether
// the frame may go.
func (x *Eraser) clearTail(ctx context.Context, s *registry.Shard, tail end, msg *streams.Message) (bool, error) {
	if s.Status == registry.Active || s.SealedAt != tail.Pos {
		return false, nil
	}
	last := *msg
	last.Sequence = tail.Seq
	_, err := streams.Tombstone(ctx, x.js, &last, schemas.ClearedErased)
	if streams.LostRace(err) {
		return false, nil // another process put one; the next purge sees it
	}
	if err != nil {
		return false, fmt.Errorf("erase: marking the end of %s: %w", s.Name(), err)
	}
	return true, nil
}

// purgeEvents takes routed messages out of EVENTS. Bare JSON is read as text: what
// names a user goes.
func (x *Eraser) purgeEvents(ctx context.Context, e *ledger.Erasure, t *schemas.Topic, sum *ledger.Purge) error {
	routed, err := streams.Checkpoints(ctx, x.js, e.Topic)
	if err != nil {
		return err
	}
	settled := func(msg *streams.Message) bool { // below the checkpoint's own message, which is state
		_, _, lane, err := schemas.EventsTokens(msg.Subject)
		return err == nil && msg.Sequence < routed[lane].Source
	}
	drop := func(seq uint64) error {
		if err := streams.Delete(ctx, x.js, x.events, seq, true, streams.Refuse); err != nil {
			return fmt.Errorf("erase: %w", err)
		}
		sum.Events++
		return nil
	}
	var bare []uint64
	within := inEventsUpTo(e)
	err = x.hits(ctx, e, t, schemas.StreamEvents, schemas.TopicFilter(e.Topic), func(msg *streams.Message) (opened, more bool) {
		opened, more = within(msg)
		if opened && settled(msg) && !schemas.HasFrameHeaders(msg.Header) && names(e, msg.Data) {
			bare = append(bare, msg.Sequence)
		}
		return opened, more
	}, func(found []hit) error {
		for _, h := range found {
			if settled(h.msg) {
				if err := drop(h.msg.Sequence); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, seq := range bare {
		err = errors.Join(err, drop(seq))
	}
	return err
}

// purgeDead takes dead letters that name a user, and books them as dropped.
func (x *Eraser) purgeDead(ctx context.Context, e *ledger.Erasure, t *schemas.Topic, sum *ledger.Purge) error {
	if len(e.Users) == 0 {
		return nil
	}
	letters, err := deadletters.New(ctx, x.js.Conn(), x.cfg.Registry, nil, nil) // it drops letters only: no key is needed
	if err != nil {
		return err
	}
	var open []registry.OpenLetter
	discard := func() error {
		err := letters.Discard(ctx, e.Topic, open)
		if err == nil {
			sum.Dead += uint64(len(open))
		}
		open = nil
		return err
	}
	err = x.deadLetters(ctx, e, t, func(msg *streams.Message) error {
		open = append(open, registry.OpenLetter{Seq: msg.Sequence, At: msg.Time.UnixNano(), Events: uint64(schemas.EventsOf(msg.Header)), Drop: true})
		if len(open) < registry.MaxOpenLetters {
			return nil
		}
		return discard()
	})
	if err != nil {
		return err
	}
	return discard()
}

// names says whether text names one of the erasure's users: as a word, so that
// u-10 and u-1@example.org are not taken for u-1.
func names(e *ledger.Erasure, text []byte) bool {
	return slices.ContainsFunc(e.Users, func(u string) bool { return named(text, []byte(u)) })
}

func named(text, user []byte) bool {
	for from := 0; ; {
		i := bytes.Index(text[from:], user)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(user)
		before, n := utf8.DecodeLastRune(text[:i])
		before2, _ := utf8.DecodeLastRune(text[:i-n])
		after, n := utf8.DecodeRune(text[end:])
		after2, _ := utf8.DecodeRune(text[end+n:])
		if !goesOn(before, before2) && !goesOn(after, after2) {
			return true
		}
		from = i + 1
	}
}

// goesOn says whether a word goes on with a rune and the one beyond: with a letter,
// a digit, a dash, or a sign inside of an address. Bytes that are not text, and the
// end, are utf8.RuneError.
func goesOn(r, beyond rune) bool {
	part := func(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	return part(r) || (r == '.' || r == '@' || r == '+') && part(beyond)
}
