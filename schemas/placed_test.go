package schemas

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
)

// A shard has at least the rows of each of its frames: what counts the rows below a frame does not wrap.
func TestPlacedCountsItsOwnRows(t *testing.T) {
	for name, c := range map[string]struct {
		shard uint64
		want  error
	}{
		"the first frame": {7, nil},
		"a later one":     {1_000, nil},
		"too few":         {6, ErrFrameHeaders},
		"none":            {0, ErrFrameHeaders},
	} {
		t.Run(name, func(t *testing.T) {
			h := nats.Header{}
			(&Placed{Frame: Frame{Rows: 7, RawBytes: 1, Schema: 1}, Pos: 1, SourceSeq: 1, ShardRows: c.shard}).SetHeaders(h)
			if _, err := ParsePlaced(h); !errors.Is(err, c.want) {
				t.Errorf("%d rows in the shard: %v, expected %v", c.shard, err, c.want)
			}
		})
	}
}
