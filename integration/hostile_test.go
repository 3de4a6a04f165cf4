package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// hostileHeaders are header blocks as a client may send them, byte by byte.
var hostileHeaders = []string{
	"NATS/1.0\r\nNats-Sequence: x\r\nNats-Stream: OTHER\r\nNats-Time-Stamp: never\r\n\r\n",
	"NATS/1.0 204 EOB\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 0\r\n\r\n",
	"NATS/1.0 404 No Messages\r\n\r\n",
	"NATS/1.0\r\nStatus: 409\r\nDescription: Consumer Deleted\r\n\r\n",
	"NATS/1.0\r\nNats-Stream: EVENTS\r\nNats-Subject: events.evil.2026-11.0\r\nNats-Sequence: 99999\r\nNats-Time-Stamp: 2026-11-22T00:00:00Z\r\nNats-Num-Pending: 0\r\nNats-Last-Sequence: 0\r\n\r\nA: b\r\n\r\n",
}

// hostileSubjects are under no topic's lane, or under one that is not text.
var hostileSubjects = []string{
	"events.app.2026-11.0", "events.app.2026-11.\xff", "events.app.\xff\xfe.0", "events.\xc3(.2026-11.0", "events.\xff.2026-11.0", "events.\xfe.2026-11.0",
	"events.a\x01b.2026-11.0", "events.a\x1b[2Jb.2026-11.0",
	// NATS lists none of these, and no filter selects them.
	"events.app.2026-11.\x7f", "events.app.2026-11\x7f.0", "events.app\x7f.2026-11.0", "events.\x7f\xff.2026-11.0",
}

// publishRaw sends a message with a header block as it is, and waits until the
// server took it.
func (e *env) publishRaw(subject, block, payload string) {
	e.t.Helper()
	u, err := url.Parse(e.srv.NATSURL)
	if err != nil {
		e.t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = fmt.Fprintf(c, "CONNECT {\"verbose\":false,\"headers\":true}\r\nHPUB %s %d %d\r\n%s%s\r\nPING\r\n", subject, len(block), len(block)+len(payload), block, payload)
	for in := bufio.NewScanner(c); in.Scan(); {
		if strings.HasPrefix(in.Text(), "PONG") {
			return
		}
		if strings.HasPrefix(in.Text(), "-ERR") {
			e.t.Fatalf("%q: %s", subject, in.Text())
		}
	}
	e.t.Fatal("the server closed the connection")
}

// TestHostileMessagesAmongGood holds the promise: whatever headers and
// subjects a client sends, what is good among them is stored, the rest are dead
// letters, and verify passes.
func TestHostileMessagesAmongGood(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	stop := e.router()
	e.sink()
	p := e.producer("app")
	const each = 3
	good, bad := uint64(0), uint64(0)
	send := func() {
		for range each {
			if err := p.Publish(t.Context(), producer.Event{UserID: "good", Message: "good"}); err != nil {
				t.Fatal(err)
			}
			good++
		}
	}
	hostile := func() {
		for _, block := range hostileHeaders {
			for _, subject := range hostileSubjects {
				e.publishRaw(subject, block, "{garbage")
				bad++
			}
			send()
		}
	}
	hostile()
	stop() // what comes meanwhile is read from the streams
	hostile()
	if got, err := e.users(e.reader()); err != nil || uint64(len(got)) != good {
		t.Errorf("%d events are found, want %d: %v", len(got), good, err)
	}
	e.router()
	e.stored("app", good, 30*time.Second)
	eventually(t, 30*time.Second, func() error {
		left, err := streams.Subjects(t.Context(), e.reg.JetStream(), schemas.StreamEvents, schemas.SubjectsEvents)
		for subject := range left {
			if err == nil && (!strings.HasPrefix(subject, "events.app.") || !schemas.Indexed(subject)) {
				err = fmt.Errorf("%q is still in %s", subject, schemas.StreamEvents)
			}
		}
		return err
	})
	e.resolved()
	e.verify(good + bad)
	letters, err := e.reader().Dead(t.Context(), "", 1000)
	if err != nil || uint64(len(letters)) != bad {
		t.Errorf("%d dead letters, want %d: %v", len(letters), bad, err)
	}
}

// TestHostileMessagesInShards: messages that look like frames, or like nothing, end
// neither a tail nor hide that a registry was lost.
func TestHostileMessagesInShards(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	subject := schemas.ShardSubject("app", schemas.MonthOf(time.Now().UnixNano()), schemas.Shard(1<<40))
	e.publishRaw(subject, "NATS/1.0\r\nNats-Sequence: x\r\n\r\n", "garbage")
	e.publishRaw("shards.\xff.x", "NATS/1.0 404 No Messages\r\n\r\n", "")
	e.router()
	p := e.producer("app", wholeFrames)
	p.Log(producer.Event{UserID: "first", Message: "x"})
	e.flush(p)
	e.routed("app", 1)
	s := e.shards("app")[0]
	frame, err := streams.DecideLast(t.Context(), e.reg.JetStream(), schemas.StreamShards, schemas.ShardSubject("app", s.Month, s.ID))
	if err != nil {
		t.Fatal(err)
	}
	like := nats.NewMsg(subject)
	like.Header, like.Data = streams.CopyHeaders(frame.Header), []byte("garbage")
	if _, err := e.js().PublishMsg(t.Context(), like); err != nil {
		t.Fatal(err)
	}
	p.Log(producer.Event{UserID: "second", Message: "x"})
	e.flush(p)
	e.routed("app", 2)
	ctx, cancel := context.WithTimeout(t.Context(), maxWait*30*time.Second)
	defer cancel()
	enough := errors.New("enough")
	var heard, notes []string
	err = e.reader().Tail(ctx, query.TailRequest{Topic: "app", Since: time.Now().Add(-time.Hour), Note: func(s string) { notes = append(notes, s) }}, func(_ string, event json.RawMessage) error {
		var ev struct {
			UserID string `json:"user_id"`
		}
		if err := json.Unmarshal(event, &ev); err != nil {
			return err
		}
		if heard = append(heard, ev.UserID); len(heard) == 2 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || strings.Join(heard, " ") != "first second" {
		t.Errorf("the tail heard %v: %v", heard, err)
	}
	if notes = slices.Compact(notes); len(notes) != 1 || !strings.Contains(notes[0], "looks like a frame") {
		t.Errorf("the notes are %q", notes)
	}
	lost, err := registry.Lost(t.Context(), e.reg.JetStream(), "app")
	if err != nil || !lost {
		t.Errorf("the frames behind the garbage do not show: %v, %v", lost, err)
	}
}

// NATS stores and acknowledges a message under a subject with the byte 0x7F, and finds
// it under no subject again: verify counts it, and it is kept as a dead letter like any
// other that is of no lane.
func TestSubjectsThatNATSDoesNotList(t *testing.T) {
	t.Parallel()
	e := start(t, oneLaneTopic())
	e.publishRaw("events.app.2026-11.\x7f", "NATS/1.0\r\n\r\n", `{"message":"unseen"}`)
	eventually(t, 20*time.Second, func() error { // NATS stores it after it answered that it has it
		rep, err := e.proof("")
		if err == nil && (rep.Pending != 1 || rep.Accepted != 1) {
			err = fmt.Errorf("a message that NATS does not list: %+v; want it to be pending", rep.Totals)
		}
		return err
	})
	e.router()
	e.sink()
	p := e.producer("app")
	e.say(p, 2) // NATS may give the hidden message to a consumer of the lane
	e.stored("app", 2, 30*time.Second)
	eventually(t, 30*time.Second, func() error {
		rep, err := e.proof("")
		if err == nil && (!rep.OK() || rep.Dead != 1 || rep.Pending != 0 || rep.Accepted != 3) {
			err = fmt.Errorf("%+v: want one dead letter and nothing pending", rep)
		}
		return err
	})
	letters, err := e.reader().Dead(t.Context(), "", 10)
	if err != nil || len(letters) != 1 || letters[0].Subject != "events.app.2026-11.\x7f" || string(letters[0].Payload) != `{"message":"unseen"}` {
		t.Errorf("dead letters: %+v, %v", letters, err)
	}
	if state := e.stream(schemas.StreamEvents); state.Msgs > 2 {
		t.Errorf("%s still has %d messages", schemas.StreamEvents, state.Msgs)
	}
}
