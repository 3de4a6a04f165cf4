package frame

import (
	"encoding/binary"
	"fmt"

	"github.com/go-faster/city"

	"github.com/almanac-events/almanac/schemas"
)

// ClickHouse's compressed framing, as its CompressedReadBuffer reads it: a checksum
// of all that follows it, the method, and both sizes, of which the first counts
// from the method on.
const (
	framingBytes = 1 + 4 + 4
	methodAt     = schemas.DigestBytes
	blockAt      = schemas.DigestBytes + framingBytes
	methodZSTD   = 0x90
)

// writeFraming fills in the head of a framed block: out[blockAt:] is the block.
func writeFraming(out []byte, rawBytes int) {
	out[methodAt] = methodZSTD
	binary.LittleEndian.PutUint32(out[methodAt+1:], uint32(len(out)-schemas.DigestBytes))
	binary.LittleEndian.PutUint32(out[methodAt+5:], uint32(rawBytes))
	sum := city.CH128(out[schemas.DigestBytes:])
	binary.LittleEndian.PutUint64(out, sum.Low)
	binary.LittleEndian.PutUint64(out[8:], sum.High)
}

// decompress opens a frame's framing and returns its block, in buf where that has
// room. Whatever the bytes are, it takes no more memory than the size they state,
// and no more than MaxFrameRawBytes.
func decompress(payload, buf []byte) ([]byte, error) {
	if len(payload) > schemas.MaxFrameBytes {
		return buf, fmt.Errorf("%w: %d bytes encoded, the limit is %d", schemas.ErrFrameTooLarge, len(payload), schemas.MaxFrameBytes)
	}
	if len(payload) < blockAt {
		return buf, fmt.Errorf("%w: %d bytes, a frame has at least %d", schemas.ErrFrameCorrupt, len(payload), blockAt)
	}
	if payload[methodAt] != methodZSTD {
		return buf, fmt.Errorf("%w: compression method 0x%02x, only ZSTD (0x%02x) is taken", schemas.ErrFrameCorrupt, payload[methodAt], methodZSTD)
	}
	packed := binary.LittleEndian.Uint32(payload[methodAt+1:])
	size := binary.LittleEndian.Uint32(payload[methodAt+5:])
	if uint64(packed)+schemas.DigestBytes != uint64(len(payload)) {
		return buf, fmt.Errorf("%w: it says it has %d bytes and has %d", schemas.ErrFrameCorrupt, uint64(packed)+schemas.DigestBytes, len(payload))
	}
	if size > schemas.MaxFrameRawBytes {
		return buf, fmt.Errorf("%w: %d bytes decompressed, the limit is %d", schemas.ErrFrameTooLarge, size, schemas.MaxFrameRawBytes)
	}
	if sum, ok := checksum(payload); !ok {
		return buf, fmt.Errorf("%w: its checksum is %s, its bytes have %016x%016x", schemas.ErrFrameCorrupt, schemas.Digest(payload), sum.Low, sum.High)
	}
	if cap(buf) < int(size) {
		buf = make([]byte, size)
	}
	raw := buf[:size]
	return raw, unzstd(raw, payload[blockAt:])
}

// IsFramed reports whether data begins as ClickHouse's framing does: the method, and
// two sizes below 16 MiB, whose last bytes are therefore 0, which JSON never has.
func IsFramed(data []byte) bool {
	return len(data) >= blockAt && data[methodAt] == methodZSTD &&
		data[methodAt+4] == 0 && data[methodAt+8] == 0
}

// Intact reports whether data is framed and has the checksum that its framing says. It does
// not open the block.
func Intact(data []byte) bool {
	if !IsFramed(data) {
		return false
	}
	_, ok := checksum(data)
	return ok
}

// checksum is that of a framed block, and whether its head says the same.
func checksum(payload []byte) (sum city.U128, ok bool) {
	sum = city.CH128(payload[schemas.DigestBytes:])
	return sum, sum.Low == binary.LittleEndian.Uint64(payload) && sum.High == binary.LittleEndian.Uint64(payload[8:])
}
