package streams_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

func TestReplicasOf(t *testing.T) {
	t.Parallel()
	peer := func(name string, current, offline bool, lag uint64) *jetstream.PeerInfo {
		return &jetstream.PeerInfo{Name: name, Current: current, Offline: offline, Lag: lag}
	}
	cluster := func(leader string, peers ...*jetstream.PeerInfo) *jetstream.ClusterInfo {
		return &jetstream.ClusterInfo{Leader: leader, Replicas: peers}
	}
	for name, c := range map[string]struct {
		want            int
		cluster         *jetstream.ClusterInfo
		is              streams.Replicas
		whole, survives bool
	}{
		"a server alone":      {want: 1, is: streams.Replicas{Want: 1, Current: 1}, whole: true},
		"three of three":      {want: 3, cluster: cluster("a", peer("b", true, false, 0), peer("c", true, false, 0)), is: streams.Replicas{Want: 3, Current: 3}, whole: true, survives: true},
		"one is away":         {want: 3, cluster: cluster("a", peer("b", false, true, 7), peer("c", true, false, 0)), is: streams.Replicas{Want: 3, Current: 2, Away: []string{"b"}, Lag: 7}},
		"one is being filled": {want: 3, cluster: cluster("a", peer("c", false, false, 9), peer("b", true, false, 0)), is: streams.Replicas{Want: 3, Current: 2, Behind: []string{"c"}, Lag: 9}},
		"one of five is away": {want: 5, cluster: cluster("a", peer("b", false, true, 0), peer("c", true, false, 0), peer("d", true, false, 0), peer("e", true, false, 0)), is: streams.Replicas{Want: 5, Current: 4, Away: []string{"b"}}, survives: true},
		"without a leader":    {want: 3, cluster: cluster("", peer("b", false, false, 0), peer("c", false, true, 0)), is: streams.Replicas{Want: 3, Away: []string{"c"}, Behind: []string{"b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := streams.ReplicasOf(&jetstream.StreamInfo{Config: jetstream.StreamConfig{Replicas: c.want}, Cluster: c.cluster})
			if !reflect.DeepEqual(got, c.is) || got.Whole() != c.whole || got.Survives() != c.survives {
				t.Errorf("%+v, whole %v, survives %v", got, got.Whole(), got.Survives())
			}
		})
	}
}

// Streams with fewer copies than the setting says are not taken for ones with them, and nothing but the verb that is named changes that.
func TestReplicasAreCompared(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	_, js := embeddedtest.Dial(t, srv.NATSURL)
	limits := schemas.StreamLimitsFor(64 << 20)
	if err := streams.Ensure(t.Context(), js, schemas.EventsStream(limits), false); err != nil {
		t.Fatal(err)
	}
	limits.Replicas = 3
	err := streams.Ensure(t.Context(), js, schemas.EventsStream(limits), false)
	if !errors.Is(err, streams.ErrUnsafe) || !strings.Contains(err.Error(), "almanac streams apply --replicas 3") {
		t.Error(err)
	}
	if err := streams.Replicate(t.Context(), js, schemas.StreamEvents, 3); err == nil || !strings.Contains(err.Error(), "is alone") {
		t.Errorf("three copies on one server: %v", err)
	}
	if err := streams.Replicate(t.Context(), js, schemas.StreamEvents, 1); err != nil {
		t.Error(err)
	}
}
