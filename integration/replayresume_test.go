package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
)

// stopWriter ends the context once it was written so many bytes.
type stopWriter struct {
	bytes.Buffer
	left int
	stop context.CancelFunc
}

func (w *stopWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		w.stop()
	}
	return w.Buffer.Write(p)
}

// A job that is told to end goes on exactly where it stood; into a topic it adds
// each event once, however often it ends and is taken up again.
func TestReplayResume(t *testing.T) {
	t.Parallel()
	other := replayTopic(3)
	other.Name, other.LaneBy = "other", []string{schemas.ColLevel, schemas.ColUserID}
	alike := replayTopic(2)
	alike.Name = "alike"
	e := running(t, replayTopic(2), other, alike)
	const n = 3000
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	e.fill("app", n, at)
	e.stored("app", n, 20*time.Second)
	e.purgeSome("app", 7)

	for _, order := range []replay.Order{replay.ByPosition, replay.ByTime} {
		whole := e.replayed(replay.Request{Topic: "app", Order: order})
		var got bytes.Buffer
		id, rounds := "", 0
		for ; ; rounds++ {
			ctx, cancel := context.WithCancel(t.Context())
			w := &stopWriter{left: 200 << 10, stop: cancel}
			j, err := e.replayer(nil).Begin(t.Context(), replay.Request{Topic: "app", Order: order})
			if id != "" {
				j, err = e.replayer(nil).Resume(t.Context(), id)
			}
			if err != nil {
				t.Fatal(err)
			}
			id = j.ID()
			_, err = j.Run(ctx, w, replay.Pace{Rate: 1e9})
			cancel()
			got.Write(w.Bytes())
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		if got.String() != strings.Join(whole, "") || rounds < 2 {
			t.Errorf("by %s: %d rounds gave %d bytes, want the %d of one run", order, rounds, got.Len(), len(strings.Join(whole, "")))
		}
		if _, err := e.replayer(nil).Resume(t.Context(), id); !errors.Is(err, replay.ErrDone) {
			t.Errorf("taking up a job that is done: %v", err)
		}
	}

	for _, into := range []string{"other", "alike"} {
		j, err := e.replayer(nil).Begin(t.Context(), replay.Request{Topic: "app", Into: into})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 { // three runs of one job, each from an older cursor than the last: as after a kill
			entry, err := e.reg.Job(t.Context(), "replay-into", j.ID())
			if err == nil {
				entry.Done = false
				entry.State = []byte(strings.Replace(string(entry.State), `"events":`, `"was":`, 1))
				if err := e.reg.SaveJob(t.Context(), &entry); err != nil {
					t.Fatal(err)
				}
				if j, err = e.replayer(nil).Resume(t.Context(), j.ID()); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := j.Run(t.Context(), nil, replay.Pace{}); err != nil {
				t.Fatal(err)
			}
		}
		e.stored(into, n, 20*time.Second)
		if got := e.count("SELECT uniqExact(id) FROM %s", e.table(into)); got != n {
			t.Errorf("%s has %d ids, want %d", into, got, n)
		}
		const sum = "SELECT sum(cityHash64(id, ts, level, message, user_id, attributes, ms, n, ok, `when`, k)) FROM %s"
		if got, want := e.count(sum, e.table(into)), e.count(sum, e.table("app")); got != want {
			t.Errorf("%s has other events than its source", into)
		}
		rep, err := e.proof(into)
		if err != nil || !rep.OK() || rep.Dead != 0 || rep.Stored != n {
			t.Errorf("%s: %+v %v", into, rep.Totals, err)
		}
	}
	before := e.count("SELECT count() FROM %s", e.table("app"))
	j, err := e.replayer(nil).Begin(t.Context(), replay.Request{Topic: "app", Into: "app"})
	if err != nil {
		t.Fatal(err)
	}
	res, err := j.Run(t.Context(), nil, replay.Pace{})
	if err != nil || !res.Same || res.Events != 0 || e.count("SELECT count() FROM %s", e.table("app")) != before {
		t.Errorf("into itself: %+v %v", res, err)
	}
}

// rewind sets a job's cursor back to its beginning: as after a kill before the
// first was saved.
func (e *env) rewind(id string) {
	e.t.Helper()
	entry, err := e.reg.Job(e.t.Context(), "replay", id)
	if err != nil {
		e.t.Fatal(err)
	}
	var state map[string]json.RawMessage
	if err := json.Unmarshal(entry.State, &state); err != nil {
		e.t.Fatal(err)
	}
	if entry.State, err = json.Marshal(map[string]json.RawMessage{"spec": state["spec"]}); err != nil {
		e.t.Fatal(err)
	}
	entry.Done = false
	if err := e.reg.SaveJob(e.t.Context(), &entry); err != nil {
		e.t.Fatal(err)
	}
}

// Into a subject that a stream listens on every event is acknowledged: a stream
// that refuses fails the job, which goes on when there is room, and what a killed
// run sent before is taken out by its Nats-Msg-Id.
func TestReplayIntoStream(t *testing.T) {
	t.Parallel()
	e := running(t, replayTopic(2))
	const n = 1000
	e.fill("app", n, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	e.stored("app", n, 20*time.Second)
	js := e.js()
	cfg := jetstream.StreamConfig{Name: "COPIES", Subjects: []string{"copies.>"}, Storage: jetstream.MemoryStorage,
		MaxMsgs: n / 2, Discard: jetstream.DiscardNew, Duplicates: time.Hour, AllowDirect: true}
	stream, err := js.CreateStream(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	has := func() uint64 {
		info, err := stream.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return info.State.Msgs
	}
	j, err := e.replayer(nil).Begin(t.Context(), replay.Request{Topic: "app", Into: "copies.app"})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := j.Run(t.Context(), nil, replay.Pace{}); err == nil || !strings.Contains(err.Error(), "COPIES did not take an event") || res.Done {
		t.Fatalf("a stream that is full: %+v %v", res, err)
	}
	if got := has(); got != n/2 {
		t.Errorf("the full stream has %d events, want %d", got, n/2)
	}
	cfg.MaxMsgs = -1
	if stream, err = js.UpdateStream(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time from the beginning
		if j, err = e.replayer(nil).Resume(t.Context(), j.ID()); err != nil {
			t.Fatal(err)
		}
		if res, err := j.Run(t.Context(), nil, replay.Pace{}); err != nil || !res.Done || res.Events != n {
			t.Fatalf("%+v %v", res, err)
		}
		if got := has(); got != n {
			t.Errorf("the stream has %d events, want %d", got, n)
		}
		e.rewind(j.ID())
	}
	var lines []string
	err = streams.Gather(t.Context(), js, "COPIES", "copies.app", 1, nil, func(msg *streams.Message) (bool, error) {
		if msg.Header.Get(jetstream.MsgIDHeader) == "" {
			t.Error("a message without an id")
		}
		lines = append(lines, string(msg.Data)+"\n")
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e.likeQuery("app", lines)
	if got := len(slices.Compact(ids(parsed(t, lines)))); got != n {
		t.Errorf("the stream has %d ids, want %d", got, n)
	}
}
