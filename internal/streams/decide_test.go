package streams

import (
	"errors"
	"testing"

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
