package faults

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
)

// playPeer is a NATS server of a cluster, which syncs before it acknowledges.
func playPeer(ctx context.Context, spec Spec) error {
	opts := &server.Options{
		ServerName: spec.Name, Host: "127.0.0.1", Port: spec.Port, NoSigs: true, Logtime: true,
		JetStream: true, StoreDir: spec.Dir, JetStreamMaxStore: spec.StoreBytes, SyncAlways: true,
		Cluster: server.ClusterOpts{Name: "three", Host: "127.0.0.1", Port: spec.HTTPPort},
		Routes:  server.RoutesFromStr(spec.Routes),
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	go s.Start()
	defer s.Shutdown()
	if err := until(ctx, startWait, 20*time.Millisecond, func(context.Context) error {
		if !s.ReadyForConnections(time.Second) {
			return fmt.Errorf("%s takes no connections", spec.Name)
		}
		return nil
	}); err != nil {
		return err
	}
	say("ready")
	<-ctx.Done()
	return nil
}

// three makes the parts of three NATS servers.
func (h *Cluster) three() {
	var specs [3]Spec
	var clients, routes [3]string
	for i := range specs {
		specs[i] = Spec{Role: RolePeer, Name: fmt.Sprintf("nats-%d", i+1), Port: embeddedtest.FreePort(h.t), HTTPPort: embeddedtest.FreePort(h.t), StoreBytes: 16 << 30}
		clients[i], routes[i] = fmt.Sprintf("nats://127.0.0.1:%d", specs[i].Port), fmt.Sprintf("nats://127.0.0.1:%d", specs[i].HTTPPort)
	}
	h.natsURL = strings.Join(clients[:], ",")
	for i := range specs {
		specs[i].Routes = strings.Join(routes[:], ",")
		h.Peers = append(h.Peers, h.part(specs[i]))
	}
	h.NATS, h.Peers = h.Peers[0], h.Peers[1:]
}

// Leader is the server that leads a stream now.
func (h *Cluster) Leader(ctx context.Context, stream string) (*Part, error) {
	js, err := jetstream.New(h.NC)
	if err != nil {
		return nil, err
	}
	var found *Part
	err = until(ctx, recoveryLimit, 50*time.Millisecond, func(ctx context.Context) error {
		info, err := streams.Info(ctx, js, stream)
		if err != nil {
			return err
		}
		for _, p := range append([]*Part{h.NATS}, h.Peers...) {
			if info.Cluster != nil && p.Spec.Name == info.Cluster.Leader && p.Alive() {
				found = p
				return nil
			}
		}
		return fmt.Errorf("%s is led by none that runs", stream)
	})
	return found, err
}

// Whole waits until every copy of streams has all of it.
func (h *Cluster) Whole(ctx context.Context, names ...string) error {
	js, err := jetstream.New(h.NC)
	if err != nil {
		return err
	}
	return until(ctx, recoveryLimit, 100*time.Millisecond, func(ctx context.Context) error {
		for _, name := range names {
			info, err := streams.Info(ctx, js, name)
			if err != nil {
				return err
			}
			if r := streams.ReplicasOf(info); !r.Whole() {
				return fmt.Errorf("%s: %s: %s", name, r, strings.Join(slices.Concat(r.Away, r.Behind), ", "))
			}
		}
		return nil
	})
}
