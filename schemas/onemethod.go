package schemas

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// OneCompression are the frames as ClickHouse takes them in one request: it refuses
// a body whose blocks are compressed in two ways. Where they differ, as they do while
// one producer of an automatic topic has time for ZSTD and another has not, those of
// the kind that has fewer bytes decompressed come back copied, as blocks of the other
// kind that hold their bytes as they are: opening a frame costs a fifth of compressing
// it again, and ClickHouse is about to open it anyway. They take up to
// MaxFrameRawBytes each, half of what all frames have decompressed at most. All others
// are the ones given.
func OneCompression(frames [][]byte) ([][]byte, error) {
	raw := map[Compression]int{}
	for _, f := range frames {
		raw[CompressionOf(f)] += rawBytesOf(f)
	}
	if len(raw) < 2 {
		return frames, nil
	}
	from, to := CompressionZSTD, CompressionLZ4
	if raw[CompressionZSTD] > raw[CompressionLZ4] {
		from, to = to, from
	}
	out := slices.Clone(frames)
	var block []byte
	for i, f := range frames {
		if CompressionOf(f) != from {
			continue
		}
		var err error
		if block, err = decompress(f, block); err != nil {
			return nil, fmt.Errorf("frame %d of %d: %w", i+1, len(frames), err)
		}
		out[i] = stored(block, to)
	}
	return out, nil
}

// rawBytesOf is the size that a frame says it has decompressed.
func rawBytesOf(payload []byte) int {
	if len(payload) < blockAt {
		return 0
	}
	return int(binary.LittleEndian.Uint32(payload[methodAt+5:]))
}

// stored is raw framed by a method, and not compressed. It may be larger than
// MaxFrameBytes: ClickHouse takes it, no stream does.
func stored(raw []byte, by Compression) []byte {
	if by == CompressionZSTD {
		out := make([]byte, blockAt, blockAt+zstdBound(len(raw)))
		return framed(zstdStored(out, raw), methodZSTD, len(raw))
	}
	out := make([]byte, blockAt+lz4Bound(len(raw)))
	return framed(out[:lz4Literals(out, blockAt, raw)], methodLZ4, len(raw))
}

// zstdStored appends raw as one frame of blocks that are not compressed.
func zstdStored(out, raw []byte) []byte {
	out = appendZstdHead(out, len(raw))
	for last := false; !last; {
		n := min(len(raw), zstdMostBlock)
		last = n == len(raw)
		out = append(appendBlockHead(out, zstdBlockRaw, n, last), raw[:n]...)
		raw = raw[n:]
	}
	return out
}
