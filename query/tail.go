package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// TailRequest asks for a topic's events as they are routed.
type TailRequest struct {
	Topic, Where string
	// Fields are what each event is to have, as Request.Fields; none: all.
	Fields []string
	// From is a position that Tail gave, to go on behind it.
	From string
	// Since, without From, begins with what was routed at that time. Neither: with
	// what is routed from now on.
	Since time.Time
	// Placed, when set, is called once the tail has its place, with the position to go on from if no event comes before
	// it is cut. What is wrong with the request was an error before.
	Placed func(pos string) error
	// Skip, when set, is asked for each frame, by where it was in EVENTS, whether its events are left out.
	Skip func(schemas.Source) bool
	// Note, when set, hears what the reader should know: that the servers are
	// away, or that a part of what was asked for is no longer in the stream.
	Note func(string)
}

// Tail calls f with each event, in the order of the stream, until ctx ends or f
// returns an error. It follows SHARDS, where every event stands once. pos is the
// place to resume behind; it stays good for the replay window, and is refused when the
// stream lost what it names. Where the stream loses its
// end meanwhile, the tail says so and goes on with what is stored since. Servers that are
// away for a while are waited for: then it goes on where it was, with nothing
// left out and nothing twice. While ClickHouse alone is away a tail goes on up to the first frame
// that only it can read: what a filter leaves to it, named fields, and what an erasure covers.
func (r *Reader) Tail(ctx context.Context, req TailRequest, f func(pos string, event json.RawMessage) error) error {
	topic, err := r.topic(ctx, req.Topic)
	if err != nil {
		return err
	}
	began := time.Now()
	_, where, err := filter.ParseWithin(ctx, req.Where, &topic, began)
	if err != nil {
		return joinRequest(err)
	}
	fields, err := filter.ParseFields(req.Fields, &topic)
	if err != nil {
		return joinRequest(err)
	}
	if req.Note == nil {
		req.Note = func(string) {}
	}
	at, err := r.tailStart(ctx, req)
	if err != nil {
		return err
	}
	end, err := streams.Info(ctx, r.js, schemas.StreamShards)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	t := &tailing{r: r, topic: topic, src: req.Where, began: began, where: where, fields: fields, at: at, known: streams.EndOf(end), f: f, note: req.Note, skip: req.Skip}
	if req.Placed != nil {
		if err := req.Placed(at.String()); err != nil {
			return err
		}
	}
	for pause := (backoff.Backoff{Least: tailPause, Most: maxTailPause}); ; {
		began := t.at
		err := t.follow(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case !errors.As(err, new(passing)) && !errors.As(err, new(givenAgain)):
			return err
		case errors.As(err, new(givenAgain)):
			req.Note(err.Error())
			continue
		case t.at != began:
			pause.Reset()
		}
		req.Note(fmt.Sprintf("the tail waits and tries again: %v", err))
		if err := pause.Wait(ctx); err != nil {
			return err
		}
	}
}

// TailEnd is where the streams end.
type TailEnd struct {
	// Pos is where a tail has what is routed from now on.
	Pos string
	// Accepted is the last message of EVENTS. What a reader asks for now has all events up to it.
	Accepted schemas.Source
}

// Has reports whether a message of EVENTS is one up to the end.
func (e *TailEnd) Has(m schemas.Source) bool {
	return m.Seq <= e.Accepted.Seq && m.Stored <= e.Accepted.Stored // a number is given again where EVENTS loses its end
}

// TailEnd returns the end as it is now.
func (r *Reader) TailEnd(ctx context.Context) (end TailEnd, err error) {
	events, err := streams.Info(ctx, r.js, schemas.StreamEvents)
	if err != nil {
		return end, fmt.Errorf("query: %w", err)
	}
	shards, err := streams.Info(ctx, r.js, schemas.StreamShards)
	if err != nil {
		return end, fmt.Errorf("query: %w", err)
	}
	return TailEnd{tailPos{seq: shards.State.LastSeq + 1}.String(), streams.EndOf(events)}, nil
}

// tailPause is how long a tail waits before it asks again servers that were away,
// doubled up to maxTailPause.
const (
	tailPause    = 250 * time.Millisecond
	maxTailPause = 5 * time.Second
)

// passing is an error of servers that may be back soon.
type passing struct{ error }

func (e passing) Unwrap() error { return e.error }

// tailing is a tail under way.
type tailing struct {
	r      *Reader
	topic  schemas.Topic
	src    string    // the filter as it was given
	began  time.Time // when its relative times are read
	where  *filter.Expr
	fields *filter.Fields
	at     tailPos        // behind this it goes on
	known  schemas.Source // a message of the stream, or its end, that stood before
	f      func(pos string, event json.RawMessage) error
	note   func(string)
	skip   func(schemas.Source) bool // nil: none

	lines   *frame.LineWriter // for the topic as of version linesOf
	linesOf int
}

// givenAgain is that the stream lost its end and gives its sequences again.
type givenAgain struct{ error }

// check moves the tail to where the stream goes on, when that lost its end. What was
// routed before and is routed again comes twice: the frames have other places.
func (t *tailing) check(ctx context.Context) error {
	next, again, err := streams.GivenAgain(ctx, t.r.js, schemas.StreamShards, t.known)
	if err != nil {
		return passing{err}
	}
	if !again {
		return nil
	}
	was := t.known.Seq
	if next < t.at.seq {
		t.at = tailPos{seq: next}
	}
	t.known.Seq = next - 1
	return givenAgain{fmt.Errorf("%s lost its end below message %d and gives its sequences again: the tail goes on at %d, events that are routed again come twice; `almanac verify %s` says what was lost",
		schemas.StreamShards, was, t.at.seq, t.topic.Name)}
}

// follow reads the stream until something fails.
func (t *tailing) follow(ctx context.Context) error {
	if err := t.check(ctx); err != nil {
		return err
	}
	feed, err := streams.Follow(ctx, t.r.js, schemas.StreamShards, streams.Range{Filter: schemas.ShardsFilter(t.topic.Name), From: t.at.seq}, tailPull)
	if err != nil {
		return passing{fmt.Errorf("query: tail of %q: %w", t.topic.Name, err)}
	}
	defer feed.Stop()
	for {
		msg, err := feed.Next(ctx)
		if err != nil {
			return passing{fmt.Errorf("query: tail of %q: %w", t.topic.Name, err)}
		}
		seq, stored := msg.Sequence, msg.Time.UnixNano()
		if seq != t.at.seq {
			t.at = tailPos{seq: seq}
		}
		t.at.stored = stored
		if err := t.frame(ctx, msg); err != nil {
			return err
		}
		t.at = tailPos{seq: seq + 1}
		t.known = schemas.Source{Seq: seq, Stored: stored}
	}
}

// tailPull bounds the frames a tail holds ahead of its reader: 8 MiB of the largest.
const tailPull = 16

// tailStart is where a tail begins: a position, a time, or the end as it stands,
// by its sequence, so that a consumer that is created again before the first frame
// came begins at the same place.
func (r *Reader) tailStart(ctx context.Context, req TailRequest) (at tailPos, err error) {
	if req.From != "" {
		if at, err = parseTailPos(req.From); err != nil {
			return at, joinRequest(err)
		}
	}
	info, err := streams.Info(ctx, r.js, schemas.StreamShards)
	if err != nil {
		return at, fmt.Errorf("query: %w", err)
	}
	switch {
	case at.seq > info.State.LastSeq+1:
		return at, joinRequest(fmt.Errorf("%w: %q lies behind the stream's end, %d: it is of another Almanac, or the stream was restored from an older copy since", ErrPosition, req.From, info.State.LastSeq))
	case at.stored != 0:
		if err = r.stillThere(ctx, at); err != nil {
			return at, err
		}
	}
	switch {
	case at.seq > 0 && at.seq < info.State.FirstSeq:
		req.Note(fmt.Sprintf("the stream begins at %d by now: what stood between that and position %s was stored and taken out; query finds it", info.State.FirstSeq, req.From))
	case at.seq > 0:
	case !req.Since.IsZero():
		// FirstAfter looks behind a time, and what was routed at Since belongs to it.
		at.seq, err = streams.FirstAfter(ctx, r.js, schemas.StreamShards, req.Since.Add(-1))
	default:
		at.seq = info.State.LastSeq + 1
	}
	at.seq = max(at.seq, 1) // of a stream that never had a message NATS says 0, where positions begin at 1
	return at, err
}

// stillThere refuses a position whose message SHARDS lost: what has its sequence since is
// another. One that was stored and taken out is good.
func (r *Reader) stillThere(ctx context.Context, at tailPos) error {
	name := schemas.Source{Seq: at.seq, Stored: at.stored}
	msg, err := streams.DecideAt(ctx, r.js, schemas.StreamShards, at.seq)
	gone := err == nil && msg.Time.UnixNano() != at.stored
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		_, gone, err = streams.GivenAgain(ctx, r.js, schemas.StreamShards, name)
	}
	if err != nil {
		return fmt.Errorf("query: position %s: %w", at, err)
	}
	if gone {
		return joinRequest(fmt.Errorf("%w: what had the number %d is gone: %s lost its end and gives its numbers again; begin at a time a little before %s instead: what is routed again comes twice",
			ErrPosition, at.seq, schemas.StreamShards, time.Unix(0, at.stored).UTC().Format(time.RFC3339)))
	}
	return nil
}

// tailPos is a place in SHARDS: a message and a row of its frame, from 1. The stream gives
// a sequence again after it lost its end, so a position that is printed says when the
// message was stored. One that a person types may not: it means what has that sequence now.
type tailPos struct {
	seq    uint64
	row    int
	stored int64 // unix ns; 0: it does not say
}

// String is 4711.12@TIME: schemas.Source.Name, with the row behind the sequence.
func (p tailPos) String() string {
	seq, at, timed := strings.Cut(schemas.Source{Seq: p.seq, Stored: p.stored}.Name(), "@")
	if timed {
		at = "@" + at
	}
	return seq + "." + strconv.Itoa(p.row) + at
}

func parseTailPos(s string) (tailPos, error) {
	place, at, timed := strings.Cut(s, "@")
	seq, text, _ := strings.Cut(place, ".")
	if timed {
		seq += "@" + at
	}
	name, err := schemas.ParseName(seq)
	row, err2 := strconv.Atoi(text)
	if err != nil || err2 != nil || row < 0 {
		return tailPos{}, fmt.Errorf("%w: %q; give the position of an event that tail printed, such as 4711.12@2026-11-20T12:00:00.123456789Z", ErrPosition, s)
	}
	return tailPos{name.Seq, row, name.Stored}, nil
}
