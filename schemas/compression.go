package schemas

import (
	"fmt"
	"slices"
)

// Compression is how a topic's frames are compressed. Readers take LZ4 and ZSTD,
// whatever the topic says now: each frame names its own (the method byte of its
// framing).
type Compression string

// The compressions. LZ4 costs the producer least. ZSTD makes an event of the bench 40
// bytes of a frame and not 82, and of real logs 13 to 30 and not 30 to 65, for 0.05 to
// 0.2 microseconds more to encode (of events up to 300 bytes) and 0.05 to 0.2 to open; NATS, which writes
// each byte twice, has those microseconds back (`almanac bench --all --only disk` has
// the sum of all parts). So a frame is worth ZSTD unless encoding is what events wait
// for: that is auto, of which each frame is one or the other.
const (
	CompressionAuto Compression = "auto"
	CompressionLZ4  Compression = "lz4"
	CompressionZSTD Compression = "zstd"
)

// Compressions lists what a topic may say, for messages and help.
var Compressions = []Compression{CompressionAuto, CompressionLZ4, CompressionZSTD}

// Frame is what one frame is compressed with: under auto ZSTD, or LZ4 when
// encoding holds events back.
func (c Compression) Frame(encodingHolds bool) Compression {
	switch {
	case c != CompressionAuto:
		return c
	case encodingHolds:
		return CompressionLZ4
	}
	return CompressionZSTD
}

// FrameCompression is how the topic's frames are compressed from now on: auto
// unless it says something else.
func (t *Topic) FrameCompression() Compression {
	if t.Compression == "" {
		return CompressionAuto
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
