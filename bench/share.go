package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// shareSamples is how many messages of SHARDS are looked at: the share comes out
// within four hundredths, and they are read in a fraction of a second.
const shareSamples = 500

// lz4Share is which share of the run's frames is in LZ4, of those that stand at even
// distances in SHARDS between two sequences. The others are in ZSTD.
func lz4Share(ctx context.Context, s jetstream.Stream, cfg *Config, first, last uint64) (float64, error) {
	frames, lz4 := 0, 0
	for seq := first; seq <= last; seq += max((last-first)/shareSamples, 1) {
		m, err := s.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue // of a stream that was purged
		}
		if err != nil {
			return 0, fmt.Errorf("bench: message %d of %s: %w", seq, schemas.StreamShards, err)
		}
		topic, _, _, err := schemas.ParseShardSubject(m.Subject)
		if err != nil || !strings.HasPrefix(topic, cfg.prefix) {
			continue // a router's checkpoint, or of another run
		}
		if frames++; schemas.CompressionOf(m.Data) == schemas.CompressionLZ4 {
			lz4++
		}
	}
	return float64(lz4) / float64(max(frames, 1)), nil
}
