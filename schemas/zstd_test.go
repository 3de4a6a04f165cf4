package schemas

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"
)

// ofZstd frames a block as ClickHouse's framing, with a true checksum.
func ofZstd(block []byte, rawBytes int) []byte {
	return framed(append(make([]byte, blockAt), block...), methodZSTD, rawBytes)
}

// compressedBy gives a topic its compression.
func compressedBy(t Topic, by Compression) *Topic {
	t.Compression = by
	return &t
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
		var c compressor
		for range 2 { // its buffers are used again
			payload := c.compress(src, CompressionZSTD)
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

// A reader opens frames of both kinds in turn, whatever the topic says now.
func TestFramesOfBothKinds(t *testing.T) {
	t.Parallel()
	events := codecEvents()
	_, byLZ4 := buildFrame(t, compressedBy(codecTopic, CompressionLZ4), events)
	f, byZSTD := buildFrame(t, compressedBy(codecTopic, CompressionZSTD), events)
	if CompressionOf(byLZ4) != CompressionLZ4 || CompressionOf(byZSTD) != CompressionZSTD {
		t.Fatalf("frames say %q and %q", CompressionOf(byLZ4), CompressionOf(byZSTD))
	}
	var r FrameReader
	if err := r.Open(byLZ4, compressedBy(codecTopic, CompressionZSTD), 1); err != nil {
		t.Fatal(err)
	}
	want := bytes.Clone(r.Raw())
	if err := r.Open(byZSTD, &codecTopic, 1); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(r.Raw(), want) {
		t.Fatal("the two hold different blocks")
	}
	if err := r.Check(f, 202611, f.MaxTs); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		frames [][]byte
		want   Compression
	}{{[][]byte{byLZ4, byZSTD, byLZ4}, CompressionLZ4}, {[][]byte{byLZ4, byZSTD, byZSTD}, CompressionZSTD}} {
		same, err := OneCompression(c.frames)
		if err != nil {
			t.Fatal(err)
		}
		for i, frame := range same {
			if err := r.Open(frame, &codecTopic, 1); err != nil || CompressionOf(frame) != c.want || !bytes.Equal(r.Raw(), want) {
				t.Errorf("frame %d is %q, %v; want %q", i, CompressionOf(frame), err, c.want)
			}
		}
	}
	if only, _ := OneCompression([][]byte{byZSTD, byZSTD}); &only[0][0] != &byZSTD[0] {
		t.Error("frames of one kind were copied")
	}
	if _, err := OneCompression([][]byte{byLZ4, byZSTD[:60]}); !errors.Is(err, ErrFrameCorrupt) {
		t.Errorf("half a frame: %v", err)
	}
}

// A block that is not compressed is what the libraries read as either kind, also
// when it is larger than a block of ZSTD may be.
func TestStored(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 3*zstdMostBlock)
	for i := range noise {
		noise[i] = byte(i * i >> 7)
	}
	for _, n := range []int{1, 14, 15, 16, 270, 300, zstdMostBlock - 1, zstdMostBlock, zstdMostBlock + 1, 3 * zstdMostBlock} {
		for _, by := range []Compression{CompressionLZ4, CompressionZSTD} {
			payload := stored(noise[:n], by)
			got, err := decompress(payload, nil)
			if err != nil || !bytes.Equal(got, noise[:n]) || CompressionOf(payload) != by || len(payload) < n {
				t.Errorf("%d bytes in %s came back as %d, %v", n, by, len(got), err)
			}
			byReader := make([]byte, n)
			if _, err := compress.NewReader(bytes.NewReader(payload)).Read(byReader); err != nil || !bytes.Equal(byReader, noise[:n]) {
				t.Errorf("ch-go reads %d bytes in %s differently, %v", n, by, err)
			}
		}
	}
}

func TestAutoCompression(t *testing.T) {
	t.Parallel()
	topic := NewTopic("app")
	if topic.Compression != CompressionAuto || (&Topic{}).FrameCompression() != CompressionAuto {
		t.Errorf("a topic that says nothing has %q", topic.Compression)
	}
	_, payload := buildFrame(t, &topic, codecEvents())
	if by := CompressionOf(payload); by != CompressionZSTD {
		t.Errorf("a frame of nobody in a hurry is in %q", by)
	}
	for _, c := range []struct {
		says  Compression
		holds bool
		want  Compression
	}{
		{CompressionAuto, false, CompressionZSTD}, {CompressionAuto, true, CompressionLZ4},
		{CompressionLZ4, false, CompressionLZ4}, {CompressionZSTD, true, CompressionZSTD},
	} {
		if got := c.says.Frame(c.holds); got != c.want {
			t.Errorf("%s, held back %v: %s, want %s", c.says, c.holds, got, c.want)
		}
	}
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
	large := bomb.EncodeAll(make([]byte, MaxFrameRawBytes), nil)
	for name, c := range map[string]struct {
		payload []byte
		want    error
	}{
		"nothing":                     {ofZstd(nil, 0), ErrFrameCorrupt},
		"nothing that is something":   {ofZstd(nil, 9), ErrFrameCorrupt},
		"no zstd":                     {ofZstd(raw, len(raw)), ErrFrameCorrupt},
		"more than it says":           {ofZstd(good, len(raw)-1), ErrFrameCorrupt},
		"less than it says":           {ofZstd(good, len(raw)+1), ErrFrameCorrupt},
		"a bomb":                      {ofZstd(large, 100), ErrFrameCorrupt},
		"beyond the limit":            {ofZstd(large, MaxFrameRawBytes+1), ErrFrameTooLarge},
		"two frames":                  {ofZstd(append(bytes.Clone(good), good...), 2*len(raw)), ErrFrameCorrupt},
		"an empty frame behind":       {ofZstd(append(bytes.Clone(good), 0x28, 0xb5, 0x2f, 0xfd, 0x20, 0, 1, 0, 0), len(raw)), ErrFrameCorrupt},
		"a skippable frame before":    {ofZstd(append(append(skippable, "junk"...), good...), len(raw)), ErrFrameCorrupt},
		"a skippable frame behind":    {ofZstd(append(append(bytes.Clone(good), skippable...), "junk"...), len(raw)), ErrFrameCorrupt},
		"one byte behind":             {ofZstd(append(bytes.Clone(good), 0x28), len(raw)), ErrFrameCorrupt},
		"a size it does not state":    {ofZstd(stream.Bytes(), len(raw)), ErrFrameCorrupt},
		"a dictionary":                {ofZstd(options(zstd.WithEncoderDictRaw(7, raw)), len(raw)), ErrFrameCorrupt},
		"a block above the frame":     {ofZstd([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x20, 4, 0x2d, 0, 0, 1, 2, 3, 4, 5}, 4), ErrFrameCorrupt},
		"a method that no frame has":  {framed(append(make([]byte, blockAt), good...), 0x02, len(raw)), ErrFrameCorrupt},
		"a checksum that is not its":  {append([]byte{1}, ofZstd(good, len(raw))[1:]...), ErrFrameCorrupt},
		"larger than a frame may be":  {ofZstd(make([]byte, MaxFrameBytes), 100), ErrFrameTooLarge},
		"a checksum of its own, good": {ofZstd(options(zstd.WithEncoderCRC(true)), len(raw)), nil},
		"no checksum of its own":      {ofZstd(options(zstd.WithEncoderCRC(false)), len(raw)), nil},
	} {
		got, err := decompress(c.payload, nil)
		if !errors.Is(err, c.want) || c.want == nil && !bytes.Equal(got, raw) {
			t.Errorf("%s: %d bytes, %v; want %v", name, len(got), err, c.want)
		}
		if cap(got) > MaxFrameRawBytes {
			t.Errorf("%s: took %d bytes", name, cap(got))
		}
	}
	for n := range good {
		if _, err := decompress(ofZstd(good[:n], len(raw)), nil); !errors.Is(err, ErrFrameCorrupt) {
			t.Errorf("cut to %d of %d bytes: %v", n, len(good), err)
		}
	}
	payload := ofZstd(good, len(raw))
	for bit := range 8 * len(payload) {
		flipped := bytes.Clone(payload)
		flipped[bit/8] ^= 1 << (bit % 8)
		if _, err := decompress(flipped, nil); Reason(err) == "" {
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
	d, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(MaxFrameRawBytes))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, block []byte, size uint32) {
		size %= 1 << 20 // no more than that is taken for each try
		raw, err := decompress(ofZstd(block, int(size)), nil)
		if cap(raw) > MaxFrameRawBytes {
			t.Fatalf("took %d bytes", cap(raw))
		}
		if err != nil {
			if Reason(err) == "" {
				t.Fatalf("an error without a reason: %v", err)
			}
			return
		}
		if again, err := d.DecodeAll(block, nil); err != nil || !bytes.Equal(raw, again) || len(raw) != int(size) {
			t.Fatalf("%d bytes, the library has %d, %v", len(raw), len(again), err)
		}
	})
}

func BenchmarkDecompress(b *testing.B) {
	raw := benchRaw(b)
	for _, by := range []Compression{CompressionLZ4, CompressionZSTD} {
		var c compressor
		payload := c.compress(raw, by)
		b.Run(string(by), func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			buf := make([]byte, len(raw))
			for b.Loop() {
				if _, err := decompress(payload, buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
