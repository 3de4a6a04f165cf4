package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
)

// replayer is a replayer on a connection of its own.
func (e *env) replayer(clock replay.Clock) *replay.Replayer {
	e.t.Helper()
	nc := e.connect()
	reg := e.registry(nc)
	reader, err := query.New(nc, reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	r, err := replay.New(e.t.Context(), replay.Config{NATS: nc, Registry: reg, DB: e.db, Reader: reader, Clock: clock})
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

// replayed runs a new job into a buffer and returns its lines.
func (e *env) replayed(q replay.Request) []string {
	e.t.Helper()
	j, err := e.replayer(nil).Begin(e.t.Context(), q)
	if err != nil {
		e.t.Fatal(err)
	}
	var out bytes.Buffer
	res, err := j.Run(e.t.Context(), &out, replay.Pace{})
	if err != nil {
		e.t.Fatal(err)
	}
	lines := strings.SplitAfter(out.String(), "\n")
	lines = lines[:len(lines)-1]
	if !res.Done || res.Events != uint64(len(lines)) {
		e.t.Errorf("%d lines, the result is %+v", len(lines), res)
	}
	return lines
}

// told is an event's line, as far as tests ask.
type told struct {
	Ts    time.Time
	ID    string
	Shard string
	Pos   uint64
}

func parsed(t testing.TB, lines []string) []told {
	t.Helper()
	out := make([]told, len(lines))
	for i, l := range lines {
		if err := json.Unmarshal([]byte(l), &out[i]); err != nil {
			t.Fatalf("%v: %s", err, l)
		}
	}
	return out
}

func ids(events []told) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = e.ID
	}
	slices.Sort(out)
	return out
}

// fill publishes n events, in frames of few, and waits until they are routed.
func (e *env) fill(topic string, n int, at time.Time) {
	e.t.Helper()
	p := e.producer(topic)
	for i := range n {
		ev := schemas.Event{Time: at.Add(time.Duration(i) * time.Millisecond), UserID: fmt.Sprintf("u-%d", i%50), Level: []string{"info", "error"}[i%2],
			Message: fmt.Sprintf("event %d \"quoted\" \x01 é \u2028 %s", i, strings.Repeat("x", i%7)),
			Attrs:   []schemas.Attr{schemas.String("k", "v\n"), schemas.Float64("ms", rand.NormFloat64()*1e3), schemas.Int64("n", int64(i)), schemas.Bool("ok", i%3 == 0)}}
		if i%11 == 0 {
			ev.Message, ev.Attrs = "bad \xff\xfe\xc3", append(ev.Attrs, schemas.Time("when", at))
		}
		p.Log(ev)
		if i%100 == 99 {
			e.flush(p)
		}
	}
	e.flush(p)
}

func replayTopic(lanes int) schemas.Topic {
	t := newTopic("app", schemas.Field{Name: "ms", Type: schemas.TypeFloat64}, schemas.Field{Name: "n", Type: schemas.TypeInt64},
		schemas.Field{Name: "ok", Type: schemas.TypeBool}, schemas.Field{Name: "when", Type: schemas.TypeTimestamp}, schemas.Field{Name: "k", Type: schemas.TypeLowCardinality})
	t.Lanes, t.Rotate = lanes, schemas.Rotation{Rows: 700}
	return t
}

// The lines are those of a query. Which positions come from SHARDS and which from ClickHouse moves while the
// janitor purges, and nothing is missing or twice wherever that lies. A replay begins at any position.
func TestReplaySeam(t *testing.T) {
	t.Parallel()
	e := start(t, replayTopic(2))
	e.router()
	stop := e.sink()
	const n = 3000
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	e.fill("app", n, at)
	e.stored("app", n, 20*time.Second)
	stop() // what comes now stays in SHARDS
	e.fill("app", 500, at.Add(time.Hour))
	e.inShards("app", n+500)

	fromStreams := e.replayed(replay.Request{Topic: "app"})
	all := ids(parsed(t, fromStreams))
	if len(slices.Compact(slices.Clone(all))) != n+500 {
		t.Fatalf("%d lines with %d ids, want %d", len(all), len(slices.Compact(slices.Clone(all))), n+500)
	}
	e.likeQuery("app", fromStreams)
	for _, seed := range []uint64{1, 3} {
		e.purgeSome("app", seed)
		lines := e.replayed(replay.Request{Topic: "app"})
		events := parsed(t, lines)
		if !slices.Equal(ids(events), all) {
			t.Fatalf("after the purge of seed %d: %d events, want the same %d", seed, len(lines), len(all))
		}
		if !slices.IsSortedFunc(events, func(a, b told) int {
			if a.Shard != b.Shard {
				return 0
			}
			return int(a.Pos) - int(b.Pos)
		}) {
			t.Error("a shard's events are not in the order of positions")
		}
		e.likeQuery("app", lines)
		byTime := parsed(t, e.replayed(replay.Request{Topic: "app", Order: replay.ByTime}))
		if !slices.Equal(ids(byTime), all) || !slices.IsSortedFunc(byTime, func(a, b told) int { return a.Ts.Compare(b.Ts) }) {
			t.Error("by time: not the same events, or not in the order of time")
		}
		some := e.replayed(replay.Request{Topic: "app", Where: "level = 'error' AND attributes.none = ''", From: at.Add(time.Second), To: at.Add(2 * time.Second)})
		if len(some) != 500 {
			t.Errorf("filter and range gave %d events, want 500", len(some))
		}
	}
	e.fromAnyPosition("app", parsed(t, fromStreams))
	e.loseEnd("app")
	if got := parsed(t, e.replayed(replay.Request{Topic: "app"})); !slices.Equal(ids(got), all) {
		t.Errorf("after a shard and the end of another were lost from SHARDS: %d events, want the same %d", len(got), len(all))
	}
	e.lostIsNamed("app")
}

// loseEnd takes out of SHARDS the last frame of a shard that is stored, none of those that fromAnyPosition reads.
func (e *env) loseEnd(topic string) {
	e.t.Helper()
	ctx := e.t.Context()
	stream, err := e.js().Stream(ctx, schemas.StreamShards)
	if err != nil {
		e.t.Fatal(err)
	}
	heads, err := e.db.Heads(ctx, topic)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, s := range e.shards(topic)[2:] {
		last, err := stream.GetLastMsgForSubject(ctx, s.Ref().Subject())
		if err != nil {
			e.t.Fatal(err)
		}
		p, err := schemas.ParsePlaced(last.Header)
		if err != nil {
			e.t.Fatal(err)
		}
		if p.Pos != heads[s.ID] {
			continue // its end is nowhere else
		}
		if err := stream.DeleteMsg(ctx, last.Sequence); err != nil {
			e.t.Fatal(err)
		}
		return
	}
	e.t.Fatal("no other shard is stored whole")
}

// lostIsNamed takes a row of a position, and then all of them, that SHARDS does not hold any more. A replay that meets it
// does not pass over it as if it were erased, and what lies around it is replayed.
func (e *env) lostIsNamed(topic string) {
	e.t.Helper()
	s := e.shards(topic)[0]
	shard := s.ID.String()
	run := func(q replay.Request) (int, error) {
		q.Topic, q.Shard = topic, shard
		j, err := e.replayer(nil).Begin(e.t.Context(), q)
		if err != nil {
			e.t.Fatal(err)
		}
		var out bytes.Buffer
		_, err = j.Run(e.t.Context(), &out, replay.Pace{})
		return bytes.Count(out.Bytes(), []byte("\n")), err
	}
	whole, err := run(replay.Request{})
	if err != nil {
		e.t.Fatal(err)
	}
	where := fmt.Sprintf("month = %d AND shard = %d AND pos = 3", uint32(s.Month), uint64(s.ID))
	rows := int(e.count("SELECT count() FROM %s WHERE %s", e.table(topic), where))
	for _, which := range []string{"id = (SELECT max(id) FROM " + e.table(topic) + " WHERE " + where + ")", "1"} {
		e.exec("ALTER TABLE %s DELETE WHERE %s AND %s SETTINGS mutations_sync = 2", e.table(topic), where, which)
		if _, err := run(replay.Request{}); !errors.Is(err, replay.ErrLost) || !strings.Contains(err.Error(), shard) {
			e.t.Errorf("rows of position 3 where %s are lost: the replay says %v", which, err)
		}
	}
	if _, err := run(replay.Request{FromPos: 3, ToPos: 3}); !errors.Is(err, replay.ErrLost) {
		e.t.Errorf("a replay of what is lost says %v", err)
	}
	below, err := run(replay.Request{ToPos: 2})
	above, moreErr := run(replay.Request{FromPos: 4})
	if below+above+rows != whole || err != nil || moreErr != nil {
		e.t.Errorf("%d events below and %d above the %d that are lost, of %d (%v, %v)", below, above, rows, whole, err, moreErr)
	}
}

// fromAnyPosition replays shards from each of their positions on, and each position alone, once SHARDS has
// nothing but the last frame of the first, and nothing of the second, and compares with what the frames brought.
func (e *env) fromAnyPosition(topic string, all []told) {
	e.t.Helper()
	stream, err := e.js().Stream(e.t.Context(), schemas.StreamShards)
	if err != nil {
		e.t.Fatal(err)
	}
	heads, err := e.db.Heads(e.t.Context(), topic)
	if err != nil {
		e.t.Fatal(err)
	}
	for i, s := range e.shards(topic)[:2] {
		subject, last := s.Ref().Subject(), uint64(0)
		var of []told
		for _, ev := range all {
			if ev.Shard == s.ID.String() {
				of, last = append(of, ev), max(last, ev.Pos)
			}
		}
		if heads[s.ID] != last || last < 5 {
			e.t.Fatalf("%s has %d positions and %d stored ones, want it whole", s.Name(), last, heads[s.ID])
		}
		if err := stream.Purge(e.t.Context(), jetstream.WithPurgeSubject(subject), jetstream.WithPurgeKeep(uint64(1-i))); err != nil {
			e.t.Fatal(err)
		}
		for pos := uint64(1); pos <= last; pos++ {
			for _, to := range []uint64{pos, 0} {
				var want []told
				for _, ev := range of {
					if ev.Pos == pos || ev.Pos > pos && to == 0 {
						want = append(want, ev)
					}
				}
				got := parsed(e.t, e.replayed(replay.Request{Topic: topic, Shard: s.ID.String(), FromPos: pos, ToPos: to}))
				if len(want) == 0 || !slices.Equal(ids(got), ids(want)) {
					e.t.Fatalf("positions %d to %d of %s gave %d events, their frames had %d", pos, to, s.Name(), len(got), len(want))
				}
			}
		}
	}
}

// likeQuery compares lines with what a query says of the same events: equal but for
// shard and position, which a query does not have of events on their way.
func (e *env) likeQuery(topic string, lines []string) {
	e.t.Helper()
	want := map[string]string{}
	cursor := ""
	for {
		page, err := e.reader().Query(e.t.Context(), query.Request{Topic: topic, Limit: 1000, Cursor: cursor})
		if err != nil {
			e.t.Fatal(err)
		}
		for i, ev := range parsed(e.t, texts(page.Events)) {
			want[ev.ID], _, _ = strings.Cut(string(page.Events[i]), `,"month":`)
		}
		if cursor = page.Cursor; cursor == "" {
			break
		}
	}
	for i, ev := range parsed(e.t, lines) {
		if got, _, _ := strings.Cut(lines[i], `,"month":`); got != want[ev.ID] {
			e.t.Fatalf("replay has %s\nquery has  %s", got, want[ev.ID])
		}
	}
}

func texts(events []json.RawMessage) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = string(e)
	}
	return out
}

// inShards waits until so many events of a topic are in SHARDS.
func (e *env) inShards(topic string, n uint64) {
	e.t.Helper()
	eventually(e.t, 20*time.Second, func() error {
		tails, err := streams.Tails(e.t.Context(), e.reg.JetStream(), topic, nil)
		got := uint64(0)
		for _, tail := range tails {
			got += tail.ShardRows
		}
		if err == nil && got != n {
			err = fmt.Errorf("%d of %d are routed", got, n)
		}
		return err
	})
}

// purgeSome does what a janitor does: a part of what is stored of each shard goes.
func (e *env) purgeSome(topic string, seed uint64) {
	e.t.Helper()
	ctx := e.t.Context()
	stream, err := e.js().Stream(ctx, schemas.StreamShards)
	if err != nil {
		e.t.Fatal(err)
	}
	heads, err := e.db.Heads(ctx, topic)
	if err != nil {
		e.t.Fatal(err)
	}
	shards, err := e.reg.Shards(ctx, topic, 0)
	if err != nil {
		e.t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, s := range shards {
		subject := schemas.ShardSubject(topic, s.Month, s.ID)
		last, err := stream.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			e.t.Fatal(err)
		}
		if heads[s.ID] == 0 {
			continue
		}
		upTo, err := streams.FindFrame(ctx, e.reg.JetStream(), subject, 1+rnd.Uint64N(heads[s.ID]), last.Sequence)
		if err != nil {
			e.t.Fatal(err)
		}
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(subject), jetstream.WithPurgeSequence(min(upTo, last.Sequence))); err != nil {
			e.t.Fatal(err)
		}
	}
}
