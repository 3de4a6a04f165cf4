package schemas

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

// zstdRead is a second reader of frames, which takes what the library takes.
var zstdRead = func() *zstd.Decoder {
	d, err := zstd.NewReader(nil)
	if err != nil {
		panic(err)
	}
	return d
}()

// checkZstd compresses raw and reads it again in both ways.
func checkZstd(t interface{ Fatalf(string, ...any) }, c *compressor, raw []byte, parts ...zstdPart) []byte {
	payload := bytes.Clone(c.compress(raw, CompressionZSTD, parts...))
	if got, err := decompress(payload, nil); err != nil || !bytes.Equal(got, raw) {
		t.Fatalf("%d bytes in parts %v came back as %d, %v", len(raw), parts, len(got), err)
	}
	if got, err := zstdRead.DecodeAll(payload[blockAt:], nil); err != nil || !bytes.Equal(got, raw) {
		t.Fatalf("%d bytes in parts %v were read as %d, %v", len(raw), parts, len(got), err)
	}
	if most := blockAt + zstdBound(len(raw)); len(payload) > most {
		t.Fatalf("%d bytes became %d, at most %d were said", len(raw), len(payload), most)
	}
	if again := c.compress(raw, CompressionZSTD, parts...); !bytes.Equal(again, payload) {
		t.Fatalf("%d bytes in parts %v became others the second time", len(raw), parts)
	}
	return payload
}

// drawParts cuts n bytes into parts.
func drawParts(t *rapid.T, n int) (parts []zstdPart) {
	for at := 0; at < n && rapid.Bool().Draw(t, "one more part"); {
		at = rapid.IntRange(at, n).Draw(t, "end")
		parts = append(parts, zstdPart{at, rapid.SampledFrom([]int{0, 1, 2, 8, 16}).Draw(t, "stride")})
	}
	return parts
}

// Literals and copies of every length that has a code, from every distance that has
// one, across the borders of blocks and parts.
func TestZstdLengthsAndDistances(t *testing.T) {
	t.Parallel()
	var lengths, distances []int
	for _, n := range []int{15, 16, 24, 32, 48, 64, 128, 256, 512, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15, 1 << 16, 1 << 17} {
		lengths = append(lengths, n-1, n, n+1, n+2, n+3, n+4)
	}
	for n := range 23 {
		distances = append(distances, 1<<n-3, 1<<n-1, 1<<n)
	}
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		letters := rapid.SampledFrom([]uint32{1, 2, 20, 256}).Draw(t, "letters")
		var raw []byte
		for range rapid.IntRange(1, 40).Draw(t, "parts") {
			n := lengths[rng.IntN(len(lengths)>>rng.IntN(3))]
			if len(raw) == 0 || rng.IntN(2) == 0 {
				for range n {
					raw = append(raw, byte(rng.Uint32()%letters))
				}
				continue
			}
			back := min(len(raw), max(1, distances[rng.IntN(len(distances))]))
			for range n {
				raw = append(raw, raw[len(raw)-back])
			}
		}
		checkZstd(t, new(compressor), raw, drawParts(t, len(raw))...)
	})
}

// Rows of numbers that grow by so much, and now and then by more.
func TestZstdRows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		raw := []byte(strings.Repeat("head", rapid.IntRange(0, 3).Draw(t, "head")))
		parts := []zstdPart{{end: len(raw)}}
		var c compressor
		for range rapid.IntRange(1, 4).Draw(t, "columns") {
			stride := rapid.SampledFrom([]int{8, 16}).Draw(t, "stride")
			step := rapid.SampledFrom([]uint64{0, 1, 3000, 1 << 20, 1 << 40, 1<<64 - 1}).Draw(t, "step")
			v := rng.Uint64()
			for range rapid.SampledFrom([]int{1, 2, 300, 2000, 20_000}).Draw(t, "rows") {
				v += step
				if rng.IntN(500) == 0 {
					v += rng.Uint64() >> rng.IntN(64)
				}
				raw = binary.LittleEndian.AppendUint64(raw, v)
				if stride == 16 {
					raw = binary.BigEndian.AppendUint64(raw, v>>3)
				}
			}
			parts = append(parts, zstdPart{len(raw), stride})
		}
		checkZstd(t, &c, raw, parts...)
	})
}

func TestZstdEdges(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 5))
	noise := make([]byte, 3*zstdMostBlock+7)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	// A match that ends a block, and goes on in the next; the same offset without
	// literals.
	across := append(bytes.Clone(noise[:70_000]), noise[:70_000]...)
	c := new(compressor)
	for name, raw := range map[string][]byte{
		"nothing": {}, "one byte": {7}, "two": {7, 7}, "across": across, "noise": noise,
		"noise twice": append(bytes.Clone(noise), noise...), "one run": make([]byte, 5*zstdMostBlock+3), "largest": make([]byte, MaxFrameRawBytes),
		"noise, then text": append(bytes.Clone(noise[:zstdMostBlock]), strings.Repeat("a login of u-7, a login of u-8 ", 9000)...),
		"text, noise, text": append(append([]byte(strings.Repeat("a login of u-7, a login of u-8 ", zstdMostBlock/31+1)[:zstdMostBlock]), noise[:zstdMostBlock]...),
			strings.Repeat("a login of u-7, a login of u-8 ", 9000)...),
	} {
		payload := checkZstd(t, c, raw)
		t.Logf("%s: %d bytes became %d", name, len(raw), len(payload))
	}
	for n := range 600 { // the head's lengths, few literals, few sequences
		checkZstd(t, c, noise[:n])
		checkZstd(t, c, bytes.Repeat(noise[:max(1, n/9)], 7))
		checkZstd(t, c, bytes.Repeat([]byte{'a'}, n))
		checkZstd(t, c, []byte(strings.Repeat("a login of u-7, a login of u-8 ", 20)[:n]))
	}
	for _, border := range []int{256, 256 + 1<<16, zstdMostBlock, 2 * zstdMostBlock} {
		for n := border - 6; n < border+6; n++ {
			checkZstd(t, c, noise[:n])
			checkZstd(t, c, bytes.Repeat([]byte("abc-9"), n/5+1)[:n])
		}
	}
}

// A block of more sequences than two bytes count (RFC 8878, 3.1.1.3.2.1): each row is
// one byte that differs from the row before, and three that do not.
func TestZstdManySequences(t *testing.T) {
	t.Parallel()
	var raw []byte
	for i := range uint32(zstdMostBlock/4 + 100) {
		raw = binary.BigEndian.AppendUint32(raw, i*i*97<<24|0x10203)
	}
	c := new(compressor)
	checkZstd(t, c, raw, zstdPart{len(raw), 4})
	if most := cap(c.zstd.sequences.list); most <= 0x7f00 {
		t.Errorf("a block has %d sequences at most", most)
	}
}

func FuzzZstd(f *testing.F) {
	f.Add([]byte("a login of u-7, a login of u-8, a login of u-7"), uint16(3), uint8(8), uint16(1))
	c := new(compressor)
	f.Fuzz(func(t *testing.T, raw []byte, end uint16, stride uint8, times uint16) {
		raw = bytes.Repeat(raw, 1+int(times)%100)
		checkZstd(t, c, raw, zstdPart{end: min(int(end), len(raw)) / 2}, zstdPart{min(int(end), len(raw)), int(stride % 32)})
	})
}

// Shares add up to the table's size, whatever the counts, and a table of them is read
// as it was written, which checkZstd shows.
func TestFseShares(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var counts [fseCodes]uint32
		n, codes := 0, rapid.IntRange(2, 53).Draw(t, "codes")
		for code := range codes {
			counts[code] = uint32(1 + rapid.IntRange(0, 1<<rapid.IntRange(0, 15).Draw(t, "bits")).Draw(t, "count"))
			n += int(counts[code])
		}
		log := fseLog(n, codes)
		if log < fseMinLog || log > fseMaxLog {
			t.Fatalf("%d bits for %d codes", log, codes)
		}
		var room [fseCodes]int16
		sum := 0
		shares := fseShares(&room, &counts, n, log)
		for code, share := range shares {
			if share == 0 || share < -1 {
				t.Fatalf("code %d of %v has %d of %v", code, counts[:codes], share, shares)
			}
			sum += max(int(share), -int(share))
		}
		if sum != 1<<log || len(shares) != codes {
			t.Fatalf("%v became %v, which is %d and not %d", counts[:codes], shares, sum, 1<<log)
		}
		new(fseTable).build(shares, log)
	})
}
