package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/schemas"
)

// An insert of the ceiling ends where a sink's would.
func TestCeilingShardCuts(t *testing.T) {
	for _, c := range []struct {
		name   string
		frame  schemas.Frame
		bytes  int
		frames int
		want   []int // frames of each insert
	}{
		{"by rows", schemas.Frame{Rows: 2000, RawBytes: 1 << 10}, 10, 250, []int{100, 100, 50}},
		{"by encoded bytes", schemas.Frame{Rows: 1, RawBytes: 1 << 10}, 8 << 20, 9, []int{4, 4, 1}},
		{"by decompressed bytes", schemas.Frame{Rows: 1, RawBytes: 64 << 20}, 10, 5, []int{2, 2, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s ceilingShard
			payload := make([]byte, c.bytes)
			for range c.frames {
				s.add(payload, c.frame)
			}
			var got []int
			for _, b := range s.batches {
				got = append(got, len(b.frames))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s: %s", c.name, d)
			}
		})
	}
}
