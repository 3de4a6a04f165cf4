package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

// ofZstd frames a block as ClickHouse's framing, with a true checksum.
func ofZstd(block []byte, rawBytes int) []byte {
	out := append(make([]byte, blockAt), block...)
	writeFraming(out, rawBytes)
	return out
}

// byChGo returns raw framed by another library, by a method of ClickHouse's.
func byChGo(t testing.TB, raw []byte, method compress.Method) []byte {
	t.Helper()
	w := compress.NewWriter(compress.LevelZero, method)
	if err := w.Compress(raw); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(w.Data)
}

func TestZstdRoundTrip(t *testing.T) {
	t.Parallel()
	var buf []byte // used again, as a reader's is
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SliceOfN(rapid.Byte(), 0, 40), 1, 12).Draw(t, "words")
		var src []byte
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(words)-1), 1, 400).Draw(t, "order") {
			src = append(src, words[i]...)
		}
		src = bytes.Repeat(append(src, 1), rapid.SampledFrom([]int{1, 1, 1, 40}).Draw(t, "repeat")) // beyond a block of 128 KiB
		for range 2 {                                                                               // buffers are used again
			payload := appendCompressed(nil, src)
			if len(payload) > blockAt+zstdBound(len(src)) {
				t.Fatalf("%d bytes became %d, above the bound", len(src), len(payload))
			}
			got, err := decompress(payload, buf)
			if err != nil || !bytes.Equal(got, src) {
				t.Fatalf("%d bytes came back as %d, %v", len(src), len(got), err)
			}
			buf = got
			byReader := make([]byte, len(src))
			if _, err := compress.NewReader(bytes.NewReader(payload)).Read(byReader); err != nil || !bytes.Equal(byReader, src) {
				t.Fatalf("ch-go reads %d bytes differently, %v", len(src), err)
			}
		}
	})
}

func TestZstdRefused(t *testing.T) {
	t.Parallel()
	raw := bytes.Repeat([]byte("u-7 logged in; "), 200)
	options := func(o ...zstd.EOption) []byte {
		e, err := zstd.NewWriter(nil, o...)
		if err != nil {
			t.Fatal(err)
		}
		return e.EncodeAll(raw, nil)
	}
	good := options()
	var stream bytes.Buffer // does not know its size when it begins
	w, _ := zstd.NewWriter(&stream)
	_, _ = w.Write(raw)
	_ = w.Flush()
	_ = w.Close()
	skippable := binary.LittleEndian.AppendUint32([]byte{0x50, 0x2a, 0x4d, 0x18}, 4)
	bomb, _ := zstd.NewWriter(nil)
	large := bomb.EncodeAll(make([]byte, schemas.MaxFrameRawBytes), nil)
	for name, c := range map[string]struct {
		payload []byte
		want    error
	}{
		"nothing":                     {ofZstd(nil, 0), schemas.ErrFrameCorrupt},
		"nothing that is something":   {ofZstd(nil, 9), schemas.ErrFrameCorrupt},
		"no zstd":                     {ofZstd(raw, len(raw)), schemas.ErrFrameCorrupt},
		"more than it says":           {ofZstd(good, len(raw)-1), schemas.ErrFrameCorrupt},
		"less than it says":           {ofZstd(good, len(raw)+1), schemas.ErrFrameCorrupt},
		"a bomb":                      {ofZstd(large, 100), schemas.ErrFrameCorrupt},
		"beyond the limit":            {ofZstd(large, schemas.MaxFrameRawBytes+1), schemas.ErrFrameTooLarge},
		"two frames":                  {ofZstd(append(bytes.Clone(good), good...), 2*len(raw)), schemas.ErrFrameCorrupt},
		"an empty frame behind":       {ofZstd(append(bytes.Clone(good), 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0), len(raw)), schemas.ErrFrameCorrupt},
		"a skippable frame before":    {ofZstd(append(append(skippable, "junk"...), good...), len(raw)), schemas.ErrFrameCorrupt},
		"a skippable frame behind":    {ofZstd(append(append(bytes.Clone(good), skippable...), "junk"...), len(raw)), schemas.ErrFrameCorrupt},
		"one byte behind":             {ofZstd(append(bytes.Clone(good), 0x28), len(raw)), schemas.ErrFrameCorrupt},
		"a size it does not state":    {ofZstd(stream.Bytes(), len(raw)), schemas.ErrFrameCorrupt},
		"a dictionary":                {ofZstd(options(zstd.WithEncoderDictRaw(7, raw)), len(raw)), schemas.ErrFrameCorrupt},
		"a block above the frame":     {ofZstd([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x2d, 0, 0, 1, 2, 3, 4, 5}, 4), schemas.ErrFrameCorrupt},
		"no compression":              {byChGo(t, raw, compress.None), schemas.ErrFrameCorrupt},
		"lz4":                         {byChGo(t, raw, compress.LZ4), schemas.ErrFrameCorrupt},
		"a checksum that is not its":  {append([]byte{1}, ofZstd(good, len(raw))[1:]...), schemas.ErrFrameCorrupt},
		"larger than a frame may be":  {ofZstd(make([]byte, schemas.MaxFrameBytes), 100), schemas.ErrFrameTooLarge},
		"a checksum of its own, good": {ofZstd(options(zstd.WithEncoderCRC(true)), len(raw)), nil},
		"no checksum of its own":      {ofZstd(options(zstd.WithEncoderCRC(false)), len(raw)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decompress(c.payload, nil)
			if !errors.Is(err, c.want) || c.want == nil && !bytes.Equal(got, raw) {
				t.Errorf("%s: %d bytes, %v; want %v", name, len(got), err, c.want)
			}
			if cap(got) > schemas.MaxFrameRawBytes {
				t.Errorf("%s: took %d bytes", name, cap(got))
			}
		})
	}
	for n := range good {
		if _, err := decompress(ofZstd(good[:n], len(raw)), nil); !errors.Is(err, schemas.ErrFrameCorrupt) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(good), err)
		}
	}
	payload := ofZstd(good, len(raw))
	for bit := range 8 * len(payload) {
		flipped := bytes.Clone(payload)
		flipped[bit/8] ^= 1 << (bit % 8)
		if _, err := decompress(flipped, nil); schemas.Reason(err) == "" {
			t.Errorf("bit %d flipped: %v", bit, err)
		}
	}
}

// Whatever a block's bytes are, what comes out has the size that was stated, or is
// refused for a reason; and what is taken is what the library reads.
func FuzzUnzstd(f *testing.F) {
	e, err := zstd.NewWriter(nil)
	if err != nil {
		f.Fatal(err)
	}
	for _, raw := range [][]byte{[]byte("one"), bytes.Repeat([]byte("u-7 logged in; "), 100), make([]byte, 200<<10)} {
		f.Add(e.EncodeAll(raw, nil), uint32(len(raw)))
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(schemas.MaxFrameRawBytes))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, block []byte, size uint32) {
		size %= 1 << 20 // no more than that is taken for each try
		raw, err := decompress(ofZstd(block, int(size)), nil)
		if cap(raw) > schemas.MaxFrameRawBytes {
			t.Fatalf("took %d bytes", cap(raw))
		}
		if err != nil {
			if schemas.Reason(err) == "" {
				t.Fatalf("an error without a reason: %v", err)
			}
			return
		}
		if again, err := d.DecodeAll(block, nil); err != nil || !bytes.Equal(raw, again) || len(raw) != int(size) {
			t.Fatalf("%d bytes, the library has %d, %v", len(raw), len(again), err)
		}
	})
}

func BenchmarkCompress(b *testing.B) {
	raw := benchRaw(b)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	var out []byte
	for b.Loop() {
		out = appendCompressed(out[:0], raw)
	}
	b.ReportMetric(float64(len(out))/schemas.FrameRows, "bytes/event")
}

func BenchmarkDecompress(b *testing.B) {
	raw := benchRaw(b)
	payload := appendCompressed(nil, raw)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	buf := make([]byte, len(raw))
	for b.Loop() {
		if _, err := decompress(payload, buf); err != nil {
			b.Fatal(err)
		}
	}
}

// benchRaw returns a frame's block before compression.
func benchRaw(b *testing.B) []byte {
	topic, events := benchEvents()
	fb := NewBuilder(&topic)
	for i := range events {
		fb.Append(&events[i], int64(i)*3000, schemas.NewID(int64(i)*3000))
	}
	var s scratch
	fb.encodeRaw(&s)
	return s.raw
}
