package frame

import "github.com/klauspost/compress/zstd"

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
	writeFraming(dst[start:], len(raw))
	return dst
}
