package streams

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestDecideLastAlone reads last messages by direct gets: what was stored a moment before, no message, and a
// stream that gives no direct gets.
func TestDecideLastAlone(t *testing.T) {
	t.Parallel()
	_, js := readsStream(t)
	ctx := timeout(t)
	for n := range 20 {
		m := nats.NewMsg("r.own")
		m.Header.Set("Nats-Num-Pending", "the publisher's")
		m.Data = []byte{byte(n)}
		ack, err := js.PublishMsg(ctx, m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecideLastAlone(ctx, js, testStream, "r.own")
		if err != nil || got.Sequence != ack.Sequence || len(got.Data) != 1 || got.Data[0] != byte(n) || got.Size != 1 || got.Header.Get("Nats-Num-Pending") != "the publisher's" || got.Header.Get(jetstream.StreamHeader) != "" {
			t.Fatalf("after message %d: %+v, %v", ack.Sequence, got, err)
		}
	}
	answer, err := js.Conn().Request("$JS.API.DIRECT.GET."+testStream, []byte(`{"last_by_subj":"r.own"}`), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := parseAlone(answer, testStream); err != nil || m.Subject != "r.own" {
		t.Errorf("the answer to a direct get is not taken: %+v, %v", m, err)
	}
	if m, err := DecideLastAlone(ctx, js, testStream, "r.nothing"); !errors.Is(err, jetstream.ErrMsgNotFound) {
		t.Errorf("a subject without a message: %+v, %v", m, err)
	}
	without := jetstream.StreamConfig{Name: "WITHOUT", Subjects: []string{"w.>"}}
	if _, err := js.CreateStream(ctx, without); err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(ctx, "w.a", []byte("a")); err != nil {
		t.Fatal(err)
	}
	if m, err := DecideLastAlone(ctx, js, without.Name, "w.a"); err != nil || string(m.Data) != "a" {
		t.Errorf("a stream without direct gets: %+v, %v", m, err)
	}
	if _, err := DecideLastAlone(ctx, js, "NOTHING", "w.a"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("a stream that is not there: %v", err)
	}
}

// TestDecideLastAloneWithAMirror: a mirror answers direct gets of its origin too, and has not all messages.
func TestDecideLastAloneWithAMirror(t *testing.T) {
	t.Parallel()
	_, js := readsStream(t)
	ctx := timeout(t)
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "COPY", MirrorDirect: true, AllowDirect: true, Mirror: &jetstream.StreamSource{Name: testStream, FilterSubject: "r.copied"}}); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{"r.copied", "r.own"} {
		if _, err := js.Publish(ctx, subject, []byte("a")); err != nil {
			t.Fatal(err)
		}
	}
	for n := 0; ; n++ { // until it has its message, and some more
		info, err := Info(ctx, js, "COPY")
		if err != nil {
			t.Fatal(err)
		}
		if m, err := DecideLastAlone(ctx, js, testStream, "r.own"); err != nil || m.Subject != "r.own" {
			t.Fatalf("question %d: %+v, %v", n, m, err)
		}
		if info.State.Msgs > 0 && n > 100 {
			return
		}
	}
}

// TestAlone says of which servers direct gets are believed.
func TestAlone(t *testing.T) {
	t.Parallel()
	srv, js := readsStream(t)
	if info, err := Info(timeout(t), js, testStream); err != nil || !Alone(js.Conn(), info) {
		t.Errorf("the server of %s: %+v, %v; it is alone", srv.NATSURL, info, err)
	}
	for name, c := range map[string]struct {
		replicas int
		cluster  *jetstream.ClusterInfo
		want     bool
	}{
		"an old server that says nothing":     {1, nil, true},
		"a server of no cluster":              {1, &jetstream.ClusterInfo{Leader: "a"}, true},
		"one copy in a cluster":               {1, &jetstream.ClusterInfo{Name: "c", Leader: "a"}, false},
		"three copies":                        {3, &jetstream.ClusterInfo{Name: "c", Leader: "a", Replicas: []*jetstream.PeerInfo{{Name: "b"}, {Name: "d"}}}, false},
		"three copies that are not said yet":  {3, nil, false},
		"a follower without a cluster's name": {1, &jetstream.ClusterInfo{Replicas: []*jetstream.PeerInfo{{Name: "b"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info := &jetstream.StreamInfo{Config: jetstream.StreamConfig{Replicas: c.replicas}, Cluster: c.cluster}
			if got := Alone(js.Conn(), info); got != c.want {
				t.Errorf("alone: %t, want %t", got, c.want)
			}
		})
	}
}
