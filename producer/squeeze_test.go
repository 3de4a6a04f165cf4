package producer

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

func TestSqueeze(t *testing.T) {
	topic := schemas.NewTopic("app")
	s, at := new(squeeze), time.Unix(1_700_000_000, 0)
	for _, c := range []struct {
		after     time.Duration // since the row before
		unencoded int
		stream    bool
		want      schemas.Compression
	}{
		{0, 1, false, schemas.CompressionZSTD},
		{0, maxUnencoded, false, schemas.CompressionZSTD},
		{0, maxUnencoded + 1, false, schemas.CompressionZSTD}, // its callers encode
		{squeezeAfter - 1, 1, false, schemas.CompressionZSTD},
		{1, maxUnencoded + 1, false, schemas.CompressionLZ4}, // and it is not over
		{squeezeHold - 1, 1, false, schemas.CompressionLZ4},  // for a while
		{1, 1, false, schemas.CompressionZSTD},
		{0, maxUnencoded + 1, false, schemas.CompressionZSTD}, // from the beginning
		{squeezeAfter, 1, false, schemas.CompressionLZ4},
		{0, maxUnencoded + 1, true, schemas.CompressionZSTD}, // what holds them up is the stream
		{0, maxUnencoded + 1, false, schemas.CompressionZSTD},
		{squeezeAfter, maxUnencoded + 1, false, schemas.CompressionLZ4}, // no longer
	} {
		at = at.Add(c.after)
		s.stream.Store(c.stream)
		if got := s.choose(&topic, c.unencoded, at); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	topic.Compression = schemas.CompressionZSTD
	if got := s.choose(&topic, 100, at); got != schemas.CompressionZSTD {
		t.Errorf("a topic that says zstd gets %s", got)
	}
}

func TestStreamHolds(t *testing.T) {
	for _, c := range []struct {
		held         bool
		unanswered   int
		bufferEvents int
		want         bool
	}{
		{false, 0, 100_000, false}, {false, 6, 100_000, false}, {false, 7, 100_000, true}, {true, 0, 100_000, true},
		{false, 1, 10_000, true}, {false, 0, 1, false},
	} {
		if got := streamHolds(c.held, c.unanswered, c.bufferEvents); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
