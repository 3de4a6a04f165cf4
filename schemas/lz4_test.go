package schemas

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"
)

// decompressed reads what compress wrote as ClickHouse's clients do.
func decompressed(t interface{ Fatalf(string, ...any) }, framed []byte, size int) []byte {
	block := framed[frameChecksumBytes+frameHeadBytes:]
	out := make([]byte, size)
	if n, err := lz4.UncompressBlock(block, out); err != nil || n != size {
		t.Fatalf("lz4: %d bytes of %d, %v", n, size, err)
	}
	byReader := make([]byte, size)
	if size > 0 {
		if _, err := compress.NewReader(bytes.NewReader(framed)).Read(byReader); err != nil {
			t.Fatalf("ch-go: %v", err)
		}
		if !bytes.Equal(out, byReader) {
			t.Fatalf("lz4 and ch-go read different bytes")
		}
	}
	return out
}

func TestCompressRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 1, 12).Draw(t, "words")
		var src []byte
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(words)-1), 0, 400).Draw(t, "order") {
			src = append(src, words[i]...)
		}
		var c compressor
		for range 2 { // its buffers are used again
			if got := decompressed(t, c.compress(src, CompressionLZ4), len(src)); !bytes.Equal(got, src) {
				t.Fatalf("%d bytes came back different", len(src))
			}
		}
	})
}

// Literals and copies of every length that is written in its own way, from every
// distance: near, as far as LZ4 reaches, and farther.
func TestCompressLengthsAndDistances(t *testing.T) {
	t.Parallel()
	lengths := []int{1, 4, 11, 12, 14, 15, 16, 18, 19, 59, 60, 61, 64, 65, 68, 127, 255, 256, 257, 269, 270, 274, 600, 65_536, 70_000}
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		var src []byte
		for range rapid.IntRange(1, 30).Draw(t, "parts") {
			n := lengths[rng.IntN(len(lengths)-2*rng.IntN(2))]
			if len(src) == 0 || rng.IntN(2) == 0 {
				for range n {
					src = append(src, byte(rng.Uint32()))
				}
				continue
			}
			back := min(len(src), []int{1, 2, 4, 8, 100, 3000, 65_535, 65_536, 1 << 20}[rng.IntN(9)])
			for range n {
				src = append(src, src[len(src)-back])
			}
		}
		var c compressor
		block := c.compress(src, CompressionLZ4)
		if got := decompressed(t, block, len(src)); !bytes.Equal(got, src) {
			t.Fatalf("%d bytes came back different", len(src))
		}
		if len(block) > blockAt+lz4Bound(len(src))-lz4Slack {
			t.Fatalf("%d bytes became %d", len(src), len(block))
		}
	})
}

func TestCompressEdges(t *testing.T) {
	t.Parallel()
	far := append(bytes.Repeat([]byte("abcdefgh"), 1), bytes.Repeat([]byte{1, 2, 3}, 40_000)...)
	for name, src := range map[string][]byte{
		"nothing": {}, "one byte": {7}, "twelve": []byte("aaaaaaaaaaaa"), "thirteen": []byte("aaaaaaaaaaaaa"),
		"one run": bytes.Repeat([]byte{0}, 300_000), "beyond the window": append(far, far...),
		"lengths around 15 and 270": []byte(strings.Repeat("x", 15) + "abcdefghijklmnopqrstuvwxyz" + strings.Repeat("y", 270) + "abcdefghijklmnopqrstuvwxyz"),
	} {
		var c compressor
		block := c.compress(src, CompressionLZ4)
		if got := decompressed(t, block, len(src)); !bytes.Equal(got, src) {
			t.Errorf("%s: came back different", name)
		}
		if len(block) > frameChecksumBytes+frameHeadBytes+lz4Bound(len(src))-lz4Slack {
			t.Errorf("%s: %d bytes became %d", name, len(src), len(block))
		}
	}
}

func FuzzCompress(f *testing.F) {
	f.Add([]byte("a login of u-7, a login of u-8, a login of u-7"))
	f.Fuzz(func(t *testing.T, src []byte) {
		var c compressor
		src = append(src, src...)
		if got := decompressed(t, c.compress(src, CompressionLZ4), len(src)); !bytes.Equal(got, src) {
			t.Fatalf("%d bytes came back different", len(src))
		}
	})
}

func BenchmarkCompress(b *testing.B) {
	raw := benchRaw(b)
	b.Run("almanac", func(b *testing.B) {
		var c compressor
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n = len(c.compress(raw, CompressionLZ4))
		}
		b.ReportMetric(float64(n)/float64(len(raw)), "ratio")
	})
	b.Run("zstd", func(b *testing.B) {
		var c compressor
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		n := 0
		for b.Loop() {
			n = len(c.compress(raw, CompressionZSTD))
		}
		b.ReportMetric(float64(n)/float64(len(raw)), "ratio")
	})
	b.Run("pierrec", func(b *testing.B) {
		c := compress.NewWriter(compress.LevelZero, compress.LZ4)
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if err := c.Compress(raw); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(c.Data))/float64(len(raw)), "ratio")
	})
}

// benchRaw is a frame's block before compression.
func benchRaw(b *testing.B) []byte {
	topic, events := benchEvents()
	fb := NewFrameBuilder(&topic)
	for i := range events {
		fb.Append(&events[i], int64(i)*3000, NewID(int64(i)*3000))
	}
	var s scratch
	fb.encodeRaw(&s)
	return s.raw
}
