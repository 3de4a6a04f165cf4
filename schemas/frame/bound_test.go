package frame

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

// Whatever the events are, a frame filled up to a limit stays below it, compressed and
// before.
func TestFrameStaysWithinWhatWasSaid(t *testing.T) {
	t.Parallel()
	// Letters, or bytes that are not UTF-8: the first hardly compress, the second do not
	// and are marked.
	noises := map[bool][]byte{}
	for _, valid := range []bool{false, true} {
		noises[valid] = make([]byte, 1<<17)
		for i := range noises[valid] {
			if noises[valid][i] = byte(rand.Uint32()); valid {
				noises[valid][i] = ' ' + noises[valid][i]%95
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.SampledFrom([]int{schemas.MaxFrameBytes, 60_000, 60_000, 20_000, 20_000, 20_000}).Draw(rt, "limit")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		longest := rapid.SampledFrom([]int{0, 1, 8, 127, 128, 130, 300, 20_000}).Draw(rt, "longest")
		mostAttrs := rapid.SampledFrom([]int{0, 1, 4, schemas.MaxAttrs}).Draw(rt, "attributes")
		valid := rapid.Bool().Draw(rt, "valid")
		noise := noises[valid]
		text := func(most int) string {
			at, n := rng.IntN(len(noise)-20_000), rng.IntN(most+1)
			return string(noise[at : at+n])
		}
		topic := codecTopic
		b := NewBuilder(&topic)
		for b.Rows() < schemas.FrameRows {
			e := schemas.Event{Level: text(min(longest, 40)), Service: text(min(longest, 40)), Type: text(longest / 8), UserID: text(longest / 8), TraceID: text(longest / 8), SpanID: text(longest / 8), Message: text(longest)}
			for range rng.IntN(mostAttrs + 1) {
				name := "k" + text(min(longest, schemas.MaxAttrKeyBytes-1))
				if rng.IntN(2) == 0 {
					name = topic.Fields[rng.IntN(len(topic.Fields))].Name
				}
				e.Attrs = append(e.Attrs, []schemas.Attr{
					schemas.String(name, text(longest/4)), schemas.Int64(name, math.MinInt64), schemas.Float64(name, -rng.Float64()/1e200), schemas.Bool(name, true),
					schemas.Time(name, time.Unix(0, rng.Int64())),
				}[rng.IntN(5)])
			}
			if e.Bytes() > schemas.MaxEventBytes {
				e.Attrs = nil
			}
			if b.MaxBytes(MaxRowBytes(&topic, e.Bytes(), len(e.Attrs))) > limit {
				break
			}
			b.Append(&e, rng.Int64(), schemas.NewID(rng.Int64()))
		}
		most := b.MaxBytes(0)
		f, payload := b.Encode()
		if len(payload) > min(most, limit) || f.RawBytes > min(most, limit) {
			rt.Fatalf("%d events: %d bytes encoded, %d before, at most %d were said, the limit is %d", b.Rows(), len(payload), f.RawBytes, most, limit)
		}
	})
}

// Keys of a dictionary grow with the words in it: no frame of events meets that
// before its limit, and its bound does not fall behind.
func TestBoundOfManyAttributes(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	b := NewBuilder(&topic)
	for n := 0; n < 70_000; {
		e := schemas.Event{}
		for range schemas.MaxAttrs {
			e.Attrs = append(e.Attrs, schemas.String(string([]byte{' ' + byte(n%90), ' ' + byte(n/90%90), ' ' + byte(n/8100)}), ""))
			n++
		}
		b.Append(&e, int64(n), schemas.NewID(int64(n)))
		if b.Rows()%64 > 0 && n < 65_000 {
			continue
		}
		f, _ := b.Encode()
		if most := b.MaxBytes(0); f.RawBytes > most {
			t.Fatalf("%d attributes are %d bytes, at most %d were said", n, f.RawBytes, most)
		}
	}
}

// Events of 200 bytes fill a frame to its rows.
func TestBoundOfUsualEvents(t *testing.T) {
	t.Parallel()
	topic, events := benchEvents()
	b := NewBuilder(&topic)
	for i := range schemas.FrameRows {
		e := events[i]
		e.Message = "request 84f1 took longer than it should have, and the one after it did not, as far as could be seen"
		if most := b.MaxBytes(MaxRowBytes(&topic, e.Bytes(), len(e.Attrs))); most > schemas.MaxFrameBytes || b.Full() {
			t.Fatalf("closed at %d events: at most %d bytes, %d before compression", b.Rows(), most, b.RawBytes())
		}
		b.Append(&e, int64(i), e.ID)
	}
}
