package frame

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/klauspost/compress/zstd"

	"github.com/almanac-events/almanac/schemas"
)

// One decoder a process: it holds zstdStates() states, of about half a megabyte each
// once they have been used, starts no goroutine for whole blocks, and lets a caller
// wait for a free one, which is for another's block at most. It is made with the
// process: its states are in channels, and one made within a testing/synctest bubble
// could not be used in another, by tests of applications that log.
var zstdDecoder = func() *zstd.Decoder {
	d, err := zstd.NewReader(nil,
		zstd.WithDecoderConcurrency(zstdStates()),
		zstd.WithDecoderMaxMemory(schemas.MaxFrameRawBytes), zstd.WithDecoderMaxWindow(schemas.MaxFrameRawBytes),
		zstd.WithDecodeAllCapLimit(true), // never beyond the buffer it is given
	)
	if err != nil {
		panic(err) // the options are constants
	}
	return d
}()

// zstdStates is how many frames are decompressed at once: four are more than a router's
// lanes ask for, and take two megabytes.
func zstdStates() int { return min(runtime.GOMAXPROCS(0), 4) }

// zstdBound returns the most that n bytes take when nothing in them can be
// compressed: the bound of ZSTD's own ZSTD_COMPRESSBOUND for sizes above a block.
func zstdBound(n int) int { return n + n>>8 + 64 }

// unzstd decompresses block, which must fill raw exactly.
func unzstd(raw, block []byte) error {
	if err := oneZstdFrame(block, len(raw)); err != nil {
		return fmt.Errorf("%w: zstd: %w", schemas.ErrFrameCorrupt, err)
	}
	out, err := zstdDecoder.DecodeAll(block, raw[:0:len(raw)])
	if err != nil {
		return fmt.Errorf("%w: zstd: %w", schemas.ErrFrameCorrupt, err)
	}
	if len(out) != len(raw) {
		return fmt.Errorf("%w: %d bytes decompressed, it says %d", schemas.ErrFrameCorrupt, len(out), len(raw))
	}
	return nil
}

// Why a block of ZSTD is refused before it is decompressed.
var (
	errZstdCut    = errors.New("it ends within its head or a block")
	errZstdBehind = errors.New("bytes follow its last block")
	errZstdHead   = errors.New("it must be one frame, without a dictionary, that states its size")
	errZstdBlock  = errors.New("a block is larger than its frame allows")
)

// zstdMostBlock is the most that a block takes (RFC 8878, 3.1.1.2.4).
const zstdMostBlock = 128 << 10

// oneZstdFrame walks the blocks (RFC 8878, 3.1.1) and refuses all but one frame of
// rawBytes bytes with nothing behind it. The decoder would pass over a few bytes
// there, and over whole frames without content, at which ClickHouse's stops.
func oneZstdFrame(block []byte, rawBytes int) error {
	var h zstd.Header
	if err := h.Decode(block); err != nil {
		return err
	}
	if h.Skippable || h.DictionaryID != 0 || !h.HasFCS || h.FrameContentSize != uint64(rawBytes) {
		return errZstdHead
	}
	rest := block[min(h.HeaderSize, len(block)):]
	most := min(zstdMostBlock, h.FrameContentSize)
	if !h.SingleSegment {
		most = min(zstdMostBlock, h.WindowSize)
	}
	for last := false; !last; {
		if len(rest) < 3 {
			return errZstdCut
		}
		head := uint32(rest[0]) | uint32(rest[1])<<8 | uint32(rest[2])<<16
		last = head&1 != 0
		size := 3 + int(head>>3)
		switch head >> 1 & 3 {
		case 1: // one byte, repeated
			size = 3 + 1
		case 2: // compressed
			if uint64(head>>3) > most {
				return errZstdBlock
			}
		}
		if size > len(rest) {
			return errZstdCut
		}
		rest = rest[size:]
	}
	tail := 0
	if h.HasCheckSum {
		tail = 4
	}
	switch {
	case len(rest) < tail:
		return errZstdCut
	case len(rest) > tail:
		return errZstdBehind
	}
	return nil
}
