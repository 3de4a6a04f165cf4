package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/checkpoint"
)

// The checks below read streams and tables themselves and use nothing of package
// query, so that they and its Verify may find each other wrong.

// messages reads a subject filter of a stream, whole.
func (e *env) messages(stream, filter string) []*streams.Message {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), maxWait*time.Minute) // without, what came within the connection's own is the whole answer
	defer cancel()
	var out []*streams.Message
	for from := uint64(1); ; from = out[len(out)-1].Sequence + 1 {
		msgs, err := jetstreamext.GetBatch(ctx, e.reg.JetStream(), stream, 500,
			jetstreamext.GetBatchSubject(filter), jetstreamext.GetBatchSeq(from))
		if err != nil {
			e.t.Fatal(err)
		}
		n := len(out)
		for msg, err := range msgs {
			if errors.Is(err, jetstreamext.ErrNoMessages) {
				break
			}
			if err != nil {
				e.t.Fatal(err)
			}
			out = append(out, &streams.Message{RawStreamMsg: *msg})
		}
		if ctx.Err() != nil {
			e.t.Fatal(ctx.Err())
		}
		if len(out) == n {
			return out
		}
	}
}

// stream is how a stream stands.
func (e *env) stream(name string) jetstream.StreamState {
	e.t.Helper()
	info, err := answered(func() (*jetstream.StreamInfo, error) { return streams.Info(e.t.Context(), e.reg.JetStream(), name) })
	if err != nil {
		e.t.Fatal(err)
	}
	return info.State
}

func (e *env) shards(topic string) []registry.Shard {
	e.t.Helper()
	shards, err := answered(func() ([]registry.Shard, error) { return e.reg.Shards(e.t.Context(), topic, 0) })
	if err != nil {
		e.t.Fatal(err)
	}
	return shards
}

// whole checks every frame and every row of a topic: positions without gaps,
// predecessors named, counts that add up, no id twice, nothing under two shards,
// no event outside its month. rows is what ClickHouse must hold in all.
func (e *env) whole(topic string, rows uint64) {
	e.t.Helper()
	table := e.table(topic)
	for _, c := range []struct {
		what, sql string
		want      uint64
	}{
		{"rows", "SELECT count() FROM " + table, rows},
		{"distinct ids", "SELECT uniqExact(id) FROM " + table, rows},
		{"ids under two shards", "SELECT count() FROM (SELECT id FROM " + table + " GROUP BY id HAVING uniqExact(shard) > 1)", 0},
		{"rows in a wrong month", "SELECT countIf(toYYYYMM(ts) != month) FROM " + table, 0},
	} {
		if got := e.count("%s", c.sql); got != c.want {
			e.t.Errorf("%s: %d %s, want %d", topic, got, c.what, c.want)
		}
	}
	var inShards uint64
	for _, s := range e.shards(topic) {
		inShards += e.wholeShard(s)
	}
	if inShards != rows {
		e.t.Errorf("%s: the shards' frames have %d events, want %d", topic, inShards, rows)
	}
}

// wholeShard checks one shard from its first frame on and returns its events.
func (e *env) wholeShard(s registry.Shard) uint64 {
	e.t.Helper()
	frames := map[uint64]uint64{} // position: events of it
	var last schemas.Placed
	prev := ""
	for _, msg := range e.messages(schemas.StreamShards, s.Ref().Subject()) {
		p, err := schemas.ParsePlaced(msg.Header)
		if err != nil {
			e.t.Fatalf("%s message %d: %v", s.Name(), msg.Sequence, err)
		}
		switch {
		case p.Pos != last.Pos+1:
			e.t.Errorf("%s: position %d follows %d", s.Name(), p.Pos, last.Pos)
		case p.Prev != prev:
			e.t.Errorf("%s: position %d names %q as its predecessor, that is %q", s.Name(), p.Pos, p.Prev, prev)
		case p.SourceEra == last.SourceEra && p.SourceSeq < last.SourceSeq:
			e.t.Errorf("%s: position %d comes from message %d, the one before from %d", s.Name(), p.Pos, p.SourceSeq, last.SourceSeq)
		case p.ShardRows != last.ShardRows+uint64(p.Rows):
			e.t.Errorf("%s: position %d brings the shard to %d events, want %d", s.Name(), p.Pos, p.ShardRows, last.ShardRows+uint64(p.Rows))
		}
		last, prev, frames[p.Pos] = p, schemas.Digest(msg.Data), uint64(p.Rows)
	}
	// Each row carries the position of its own frame.
	var rows []struct{ Pos, N, IDs uint64 }
	err := e.hand.Conn().Select(e.t.Context(), &rows, fmt.Sprintf("SELECT pos AS Pos, count() AS N, uniqExact(id) AS IDs FROM %s WHERE month = %d AND shard = %d GROUP BY pos ORDER BY pos",
		e.table(s.Topic), uint32(s.Month), uint64(s.ID)))
	if err != nil {
		e.t.Fatal(err)
	}
	for i, r := range rows {
		if want := frames[r.Pos]; r.Pos != uint64(i+1) || r.N != want || r.IDs != want {
			e.t.Errorf("%s: row group %d is of position %d with %d rows and %d ids, its frame has %d", s.Name(), i+1, r.Pos, r.N, r.IDs, want)
		}
	}
	if uint64(len(rows)) != last.Pos {
		e.t.Errorf("%s: its last frame is %d, ClickHouse has %d positions", s.Name(), last.Pos, len(rows))
	}
	if s.Status == registry.Closed && (s.Rows != last.ShardRows || s.SealedAt != last.Pos) {
		e.t.Errorf("%s was closed with %d rows at position %d, it has %d and %d", s.Name(), s.Rows, s.SealedAt, last.ShardRows, last.Pos)
	}
	return last.ShardRows
}

// closed waits until every shard but the lanes' active ones is closed.
func (e *env) closed(topic string, within time.Duration) []registry.Shard {
	e.t.Helper()
	var shards []registry.Shard
	eventually(e.t, within, func() error {
		shards = e.shards(topic)
		if slices.ContainsFunc(shards, func(s registry.Shard) bool {
			return s.Status == registry.Sealed || s.Status == registry.Active && s.Reason != ""
		}) {
			return fmt.Errorf("not yet closed: %s", describe(shards))
		}
		return nil
	})
	return shards
}

func describe(shards []registry.Shard) string {
	var b strings.Builder
	for _, s := range shards {
		fmt.Fprintf(&b, "%s lane %d %s: %d rows, sealed at %d, reason %q; ", s.Name(), s.ID.Lane(), s.Status, s.Rows, s.SealedAt, s.Reason)
	}
	return b.String()
}

// rotated checks a topic of one lane and one month that was cut at rows: all
// shards but one are closed, hold at least rows and less than a frame more.
func (e *env) rotated(topic string, rows uint64, want int) {
	e.t.Helper()
	shards := e.closed(topic, 30*time.Second)
	if len(shards) != want {
		e.t.Fatalf("%d shards, want %d: %s", len(shards), want, describe(shards))
	}
	active := 0
	for _, s := range shards {
		if s.Status == registry.Active {
			active++
			continue
		}
		if s.Rows < rows || s.Rows >= rows+schemas.FrameRows {
			e.t.Errorf("%s was closed with %d rows, want %d to %d", s.Name(), s.Rows, rows, rows+schemas.FrameRows-1)
		}
		if s.Reason != "rows" {
			e.t.Errorf("%s was rotated for %q, want rows", s.Name(), s.Reason)
		}
		var n, lo, hi uint64
		err := e.hand.Conn().QueryRow(e.t.Context(), fmt.Sprintf("SELECT count(), toUInt64(toUnixTimestamp64Nano(min(ts))), toUInt64(toUnixTimestamp64Nano(max(ts))) FROM %s WHERE shard = %d",
			e.table(topic), uint64(s.ID))).Scan(&n, &lo, &hi)
		if err != nil {
			e.t.Fatal(err)
		}
		if s.Rows != n || s.MinTs != int64(lo) || s.MaxTs != int64(hi) {
			e.t.Errorf("%s was closed with %d rows of %d to %d, ClickHouse has %d of %d to %d", s.Name(), s.Rows, s.MinTs, s.MaxTs, n, lo, hi)
		}
	}
	if active != 1 {
		e.t.Errorf("%d shards are active, want 1: %s", active, describe(shards))
	}
}

// feb is a moment of February 2026, spread over the month by i.
func feb(i, n int) time.Time {
	start := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	return start.Add(time.Duration(i) * (28 * 24 * time.Hour / time.Duration(n)))
}

// oneLane is a topic whose events all take one way, cut at rows.
func oneLane(name string, rows uint64) schemas.Topic {
	t := newTopic(name)
	t.Lanes, t.Rotate = 1, schemas.Rotation{Rows: rows}
	return t
}

// parallel runs f n times at once and waits for all.
func parallel(t testing.TB, n int, f func(i int)) {
	t.Helper()
	done := make(chan struct{})
	for i := range n {
		go func() {
			defer func() { done <- struct{}{} }()
			f(i)
		}()
	}
	for range n {
		<-done
	}
}

// publishOf has a producer of its own publish n events of a user, in whole frames.
func (e *env) publishOf(user string, n int) {
	e.t.Helper()
	p := e.producer("app", wholeFrames)
	for i := range n {
		if err := p.Publish(e.t.Context(), producer.Event{UserID: user, Message: fmt.Sprint(i)}); err != nil {
			e.t.Fatal(err)
		}
	}
	if err := p.Close(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
}

// publish puts a message into EVENTS as any NATS client would.
func (e *env) publish(subject, payload string, headers ...string) {
	e.t.Helper()
	msg := nats.NewMsg(subject)
	msg.Data = []byte(payload)
	for i := 0; i < len(headers); i += 2 {
		msg.Header[headers[i]] = []string{headers[i+1]}
	}
	ctx, cancel := context.WithTimeout(e.t.Context(), maxWait*10*time.Second) // the client's own is 5 s
	defer cancel()
	if _, err := e.js().PublishMsg(ctx, msg); err != nil {
		e.t.Fatal(err)
	}
}

// routed waits until n events of a topic are routed or dead.
func (e *env) routed(topic string, n uint64) {
	e.t.Helper()
	eventually(e.t, 20*time.Second, func() error {
		if got := e.routedSoFar(topic); got != n {
			return fmt.Errorf("%d events are routed, want %d", got, n)
		}
		return nil
	})
}

func (e *env) routedSoFar(topic string) (n uint64) {
	e.t.Helper()
	for _, cp := range e.checkpoints(topic) {
		n += cp.Rows + cp.Dead
	}
	return n
}

// checkpoints are the last checkpoints of a topic's lanes.
func (e *env) checkpoints(topic string) []checkpoint.Checkpoint {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), maxWait*time.Minute)
	defer cancel()
	msgs, err := jetstreamext.GetLastMsgsFor(ctx, e.reg.JetStream(), schemas.StreamShards, []string{schemas.RoutedFilter(topic)})
	if err != nil {
		e.t.Fatal(err)
	}
	var out []checkpoint.Checkpoint
	for msg, err := range msgs {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			break
		}
		if err != nil {
			e.t.Fatal(err)
		}
		cp, err := checkpoint.Parse(msg.Header, msg.Data)
		if err != nil {
			e.t.Fatal(err)
		}
		out = append(out, cp)
	}
	if ctx.Err() != nil {
		e.t.Fatal(ctx.Err())
	}
	return out
}
