package schemas

import (
	"encoding/binary"
	"fmt"

	"github.com/go-faster/city"
	"github.com/klauspost/compress/s2"
	"github.com/pierrec/lz4/v4"
)

// ClickHouse's compressed framing, as its CompressedReadBuffer reads it: a checksum
// of all that follows it, the method, and both sizes, of which the first counts
// from the method on.
const (
	frameChecksumBytes = 16
	frameHeadBytes     = 1 + 4 + 4
	methodAt           = frameChecksumBytes
	blockAt            = frameChecksumBytes + frameHeadBytes
	methodLZ4          = 0x82
	methodZSTD         = 0x90
)

// compressor writes the framing with one compressed block in it.
//
// LZ4's matches are found by S2's Snappy encoder, which is assembly on amd64 and arm64
// and three times as fast as the LZ4 encoders written in Go; what it found is then
// written down as LZ4: both formats are literals and copies of what came before. ZSTD's
// are looked for here (zstdWriter). BenchmarkCompress has both.
type compressor struct {
	found []byte // the Snappy block
	data  []byte // the framing and the compressed block
	zstd  zstdWriter
}

// compress returns raw framed, valid until the next call. parts is what is known of it,
// for ZSTD.
func (c *compressor) compress(raw []byte, by Compression, parts ...zstdPart) []byte {
	if by == CompressionZSTD {
		if need := blockAt + zstdBound(len(raw)); cap(c.data) < need {
			c.data = make([]byte, need)
		}
		c.data = c.zstd.appendTo(c.data[:blockAt], raw, parts)
		return framed(c.data, methodZSTD, len(raw))
	}
	need := blockAt + lz4Bound(len(raw))
	if cap(c.data) < need {
		c.data = make([]byte, need)
	}
	if most := s2.MaxEncodedLen(len(raw)) + snappySlack; cap(c.found) < most {
		c.found = make([]byte, most)
	}
	c.data = c.data[:cap(c.data)]
	n := snappyToLZ4(c.data[blockAt:], s2.EncodeSnappy(c.found[:cap(c.found)], raw), raw)
	return framed(c.data[:blockAt+n], methodLZ4, len(raw))
}

// framed writes the framing's head before the block that stands behind it.
func framed(out []byte, method byte, rawBytes int) []byte {
	out[methodAt] = method
	binary.LittleEndian.PutUint32(out[methodAt+1:], uint32(len(out)-frameChecksumBytes))
	binary.LittleEndian.PutUint32(out[methodAt+5:], uint32(rawBytes))
	sum := city.CH128(out[frameChecksumBytes:])
	binary.LittleEndian.PutUint64(out, sum.Low)
	binary.LittleEndian.PutUint64(out[8:], sum.High)
	return out
}

// decompress opens a frame's framing and returns its block, in buf where that has
// room. Whatever the bytes are, it takes no more memory than the size they state,
// and no more than MaxFrameRawBytes.
func decompress(payload, buf []byte) ([]byte, error) {
	if len(payload) > MaxFrameBytes {
		return buf, fmt.Errorf("%w: %d bytes encoded, the limit is %d", ErrFrameTooLarge, len(payload), MaxFrameBytes)
	}
	if len(payload) < blockAt {
		return buf, fmt.Errorf("%w: %d bytes, a frame has at least %d", ErrFrameCorrupt, len(payload), blockAt)
	}
	by := CompressionOf(payload)
	if by == "" {
		return buf, fmt.Errorf("%w: compression method 0x%02x, only LZ4 (0x%02x) and ZSTD (0x%02x) are taken", ErrFrameCorrupt, payload[methodAt], methodLZ4, methodZSTD)
	}
	packed := binary.LittleEndian.Uint32(payload[methodAt+1:])
	size := binary.LittleEndian.Uint32(payload[methodAt+5:])
	if uint64(packed)+frameChecksumBytes != uint64(len(payload)) {
		return buf, fmt.Errorf("%w: it says it has %d bytes and has %d", ErrFrameCorrupt, uint64(packed)+frameChecksumBytes, len(payload))
	}
	if size > MaxFrameRawBytes {
		return buf, fmt.Errorf("%w: %d bytes decompressed, the limit is %d", ErrFrameTooLarge, size, MaxFrameRawBytes)
	}
	if sum := city.CH128(payload[frameChecksumBytes:]); sum.Low != binary.LittleEndian.Uint64(payload) || sum.High != binary.LittleEndian.Uint64(payload[8:]) {
		return buf, fmt.Errorf("%w: its checksum is %s, its bytes have %016x%016x", ErrFrameCorrupt, Digest(payload), sum.Low, sum.High)
	}
	if cap(buf) < int(size) {
		buf = make([]byte, size)
	}
	raw, block := buf[:size], payload[blockAt:]
	if by == CompressionZSTD {
		return raw, unzstd(raw, block)
	}
	switch n, err := lz4.UncompressBlock(block, raw); {
	case err != nil:
		return raw, fmt.Errorf("%w: lz4: %w", ErrFrameCorrupt, err)
	case n != len(raw):
		return raw, fmt.Errorf("%w: %d bytes decompressed, it says %d", ErrFrameCorrupt, n, len(raw))
	}
	return raw, nil
}
