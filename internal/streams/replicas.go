package streams

import (
	"context"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// Replicas is how many copies of a stream there are to be, and which servers lack some of it.
type Replicas struct {
	Want, Current int
	// Away are the servers that do not answer their leader, Behind those that do not have all of it yet.
	Away, Behind []string
	// Lag is how many messages the last of them lacks.
	Lag uint64
}

// Whole reports whether every copy has all of the stream.
func (r Replicas) Whole() bool { return r.Current >= r.Want }

// Survives reports whether the stream goes on taking messages when one more server dies: a majority is left.
func (r Replicas) Survives() bool { return r.Want > 1 && 2*(r.Current-1) > r.Want }

func (r Replicas) String() string { return fmt.Sprintf("%d of %d copies", r.Current, r.Want) }

// ReplicasOf reads how a stream's copies are, as its leader said.
func ReplicasOf(info *jetstream.StreamInfo) Replicas {
	r := Replicas{Want: max(info.Config.Replicas, 1), Current: 1}
	if info.Cluster == nil {
		return r
	}
	if info.Cluster.Leader == "" {
		r.Current = 0
	}
	for _, p := range info.Cluster.Replicas {
		switch {
		case p.Offline:
			r.Away = append(r.Away, p.Name)
		case !p.Current:
			r.Behind = append(r.Behind, p.Name)
		default:
			r.Current++
		}
		r.Lag = max(r.Lag, p.Lag)
	}
	slices.Sort(r.Away)
	slices.Sort(r.Behind)
	return r
}

// Replicate gives a stream that exists another number of copies. The servers fill them while the stream goes on; ReplicasOf says
// how far they are.
func Replicate(ctx context.Context, js jetstream.JetStream, stream string, copies int) error {
	s, err := Open(ctx, js, stream)
	if err != nil {
		return fmt.Errorf("streams: %s: %w", stream, err)
	}
	cfg := s.CachedInfo().Config
	if max(cfg.Replicas, 1) == copies {
		return nil
	}
	cfg.Replicas = copies
	if err := update(ctx, js, cfg); err != nil {
		return TooSmall("stream "+stream, cfg.MaxBytes, fmt.Errorf("streams: %d copies of %s: %w", copies, stream, err))
	}
	return nil
}

// CheckReplicas returns ErrUnsafe where a stream has fewer copies than the setting says.
func CheckReplicas(got, want jetstream.StreamConfig) error {
	if max(got.Replicas, 1) >= want.Replicas {
		return nil
	}
	return fmt.Errorf("%w: stream %s has %d of the %d copies that the setting replicas asks for; `almanac streams apply --replicas %d` gives them to all streams",
		ErrUnsafe, got.Name, max(got.Replicas, 1), want.Replicas, want.Replicas)
}

// Codes of the server's errors.json by which it refuses a number of copies.
const (
	// "no suitable peers for placement": too few servers, or none of them has room.
	codeNoPeers jetstream.ErrorCode = 10005
	// "replicas > 1 not supported in non-clustered mode".
	codeNotClustered jetstream.ErrorCode = 10074
)
