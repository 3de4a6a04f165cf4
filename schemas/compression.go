package schemas

import (
	"fmt"
	"slices"
)

// Compression is how a frame's block is compressed. Readers take either, whatever
// the topic says now: each frame names its own (the method byte of its framing).
type Compression string

// The compressions. LZ4 costs the producer least. ZSTD makes an event of the bench 46
// bytes of a frame and not 82, and of real logs 13 to 30 and not 30 to 65, for 0.1 to
// 0.4 microseconds more to encode and 0.05 to 0.2 more to open (`almanac bench --all
// --only disk` has the sum of all parts).
const (
	CompressionLZ4  Compression = "lz4"
	CompressionZSTD Compression = "zstd"
)

// Compressions lists both, for messages and help.
var Compressions = []Compression{CompressionLZ4, CompressionZSTD}

// FrameCompression is how the topic's frames are compressed from now on: LZ4
// unless it says something else.
func (t *Topic) FrameCompression() Compression {
	if t.Compression == "" {
		return CompressionLZ4
	}
	return t.Compression
}

// validateCompression reports an unknown compression.
func (t *Topic) validateCompression() error {
	if slices.Contains(Compressions, t.FrameCompression()) {
		return nil
	}
	return fmt.Errorf("compression %q, it must be one of %v", t.Compression, Compressions)
}

// CompressionOf is how a frame says it is compressed; empty when it is too short
// to say, or names a method that no frame may have.
func CompressionOf(payload []byte) Compression {
	if len(payload) <= methodAt {
		return ""
	}
	return compressionOf[payload[methodAt]]
}

// compressionOf are the methods of ClickHouse's framing that a frame may have.
var compressionOf = map[byte]Compression{methodLZ4: CompressionLZ4, methodZSTD: CompressionZSTD}
