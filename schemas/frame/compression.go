package frame

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// Frames are written as ZSTD. Readers also take LZ4, which earlier versions wrote:
// streams hold their frames for the replay window.

// Compression names the method that a frame is compressed with.
type Compression string

// The methods a reader takes.
const (
	CompressionLZ4  Compression = "lz4"
	CompressionZSTD Compression = "zstd"
)

// CompressionOf returns the method that a frame's framing names. It returns "" when
// the frame is too short to name one, or names a method that no frame may have.
func CompressionOf(payload []byte) Compression {
	if len(payload) <= methodAt {
		return ""
	}
	return compressionOf[payload[methodAt]]
}

// compressionOf holds the methods of ClickHouse's framing that a frame may have.
var compressionOf = map[byte]Compression{methodLZ4: CompressionLZ4, methodZSTD: CompressionZSTD}

// OneCompression returns the frames in one method: ClickHouse refuses a request
// whose blocks have two. If both methods occur, LZ4 frames are compressed again as
// ZSTD; all others are returned as given. A re-compressed frame may exceed
// MaxFrameBytes: ClickHouse takes it, no stream does.
func OneCompression(frames [][]byte) ([][]byte, error) {
	isLZ4 := func(f []byte) bool { return CompressionOf(f) == CompressionLZ4 }
	notLZ4 := func(f []byte) bool { return !isLZ4(f) }
	if !slices.ContainsFunc(frames, isLZ4) || !slices.ContainsFunc(frames, notLZ4) {
		return frames, nil
	}
	out := slices.Clone(frames)
	var raw []byte
	for i, f := range frames {
		if !isLZ4(f) {
			continue
		}
		var err error
		if raw, err = decompress(f, raw); err != nil {
			return nil, fmt.Errorf("frame %d of %d: %w", i+1, len(frames), err)
		}
		out[i] = appendCompressed(nil, raw)
	}
	return out, nil
}

// zstdEncoder is the process's one encoder. It compresses as many frames at once as
// there are processors, and a further caller waits for one of them. It is made, and
// used once, with the process: its states are in channels, and one made within a
// testing/synctest bubble could not be used in another.
//
// The level is the fastest: compression serves the streams, and ClickHouse
// compresses the stored rows again by column. The window is a usual frame's size
// (FrameRawBytes), which bounds a state to about 1.5 MiB. The framing has a checksum
// already.
var zstdEncoder = func() *zstd.Encoder {
	e, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(512<<10), zstd.WithLowerEncoderMem(true),
		zstd.WithSingleSegment(true), zstd.WithEncoderCRC(false),
	)
	if err != nil {
		panic(err) // the options are constants
	}
	e.EncodeAll([]byte{0}, nil)
	return e
}()

// appendCompressed appends raw to dst, compressed and framed.
func appendCompressed(dst, raw []byte) []byte {
	start := len(dst)
	dst = zstdEncoder.EncodeAll(raw, append(dst, make([]byte, blockAt)...))
	writeFraming(dst[start:], methodZSTD, len(raw))
	return dst
}
