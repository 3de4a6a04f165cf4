package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/almanac-events/almanac/schemas"
)

// Record is one frame, with all it is published under.
type Record struct {
	Topic   string
	Month   schemas.Month
	Lane    int
	Head    schemas.Frame // Producer and Seq set
	Payload []byte        // encoded; of a record that was read, valid until the next is
}

// Stream is the lane this record's seq counts in.
func (r *Record) Stream() Stream { return Stream{r.Head.Producer, r.Lane} }

// Stream is what seqs count in: one producer's frames of one lane.
type Stream struct {
	Producer string
	Lane     int
}

// A record is a head of headBytes and a body. All numbers are little-endian.
//
//	head: magic u32 | size of the body u32 | CRC-32C of the body u32 |
//	      CRC-32C of salt u64, place u64 and the 12 bytes before u32
//	body: what u8, then by what:
//	  frame   producer, topic: each length u8 and bytes | month u32 | lane u32 | seq u64 | rows u32 |
//	          raw bytes u32 | min ts i64 | max ts i64 | schema u32 | payload
//	  end     frames u64 | events u64: of the segment, which ends here
//	  mark    producer: length u8 and bytes | lane u32 | seq u64 (file acks)
const (
	magic     = 0x9e53a1f7 // no UTF-8, so that it is rare in what people log
	headBytes = 16

	whatFrame = 1
	whatEnd   = 2
	whatAcked = 3

	endBytes   = headBytes + 1 + 16
	fixedBytes = 4 + 4 + 8 + 4 + 4 + 8 + 8 + 4 // of a frame, after its names

	// maxBody is the largest frame a stream takes, and the names beside it.
	maxBody = schemas.MaxMessageBytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func headSum(head []byte, salt, at uint64) uint32 {
	var b [headBytes + 12]byte
	binary.LittleEndian.PutUint64(b[0:], salt)
	binary.LittleEndian.PutUint64(b[8:], at)
	copy(b[16:], head[:12])
	return crc32.Checksum(b[:], castagnoli)
}

// seal fills in the head of the record that begins at b[from:] and lies at the
// place at of the file.
func seal(b []byte, from int, salt, at uint64) []byte {
	head, body := b[from:], b[from+headBytes:]
	binary.LittleEndian.PutUint32(head[0:], magic)
	binary.LittleEndian.PutUint32(head[4:], uint32(len(body)))
	binary.LittleEndian.PutUint32(head[8:], crc32.Checksum(body, castagnoli))
	binary.LittleEndian.PutUint32(head[12:], headSum(head, salt, at))
	return b
}

// bodySize reads a head; false when it is none.
func bodySize(head []byte, salt, at uint64) (n int, sum uint32, ok bool) {
	if len(head) < headBytes || binary.LittleEndian.Uint32(head) != magic ||
		binary.LittleEndian.Uint32(head[12:]) != headSum(head, salt, at) {
		return 0, 0, false
	}
	n = int(binary.LittleEndian.Uint32(head[4:]))
	return n, binary.LittleEndian.Uint32(head[8:]), n >= 1 && n <= maxBody
}

// appendFrame adds r as the record at the place at.
func appendFrame(b []byte, salt, at uint64, r *Record) ([]byte, error) {
	if len(r.Head.Producer) > schemas.MaxProducerBytes || len(r.Topic) > 63 {
		return b, fmt.Errorf("producer %q or topic %q is too long a name", r.Head.Producer, r.Topic)
	}
	from := len(b)
	b = append(b, make([]byte, headBytes)...)
	b = append(b, whatFrame)
	b = appendName(b, r.Head.Producer)
	b = appendName(b, r.Topic)
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(r.Month))
	b = le.AppendUint32(b, uint32(r.Lane))
	b = le.AppendUint64(b, r.Head.Seq)
	b = le.AppendUint32(b, uint32(r.Head.Rows))
	b = le.AppendUint32(b, uint32(r.Head.RawBytes))
	b = le.AppendUint64(b, uint64(r.Head.MinTs))
	b = le.AppendUint64(b, uint64(r.Head.MaxTs))
	b = le.AppendUint32(b, uint32(r.Head.Schema))
	b = append(b, r.Payload...)
	if n := len(b) - from - headBytes; n > maxBody {
		return b[:from], fmt.Errorf("%w: %d bytes, the limit is %d", schemas.ErrFrameTooLarge, n, maxBody)
	}
	return seal(b, from, salt, at), nil
}

// parseFrame reads the body of a frame; the payload stays part of it.
func parseFrame(body []byte) (r Record, ok bool) {
	b := body[1:]
	if r.Head.Producer, b, ok = cutName(b); !ok {
		return r, false
	}
	if r.Topic, b, ok = cutName(b); !ok || len(b) < fixedBytes {
		return r, false
	}
	le := binary.LittleEndian
	r.Month, r.Lane, r.Head.Seq = schemas.Month(le.Uint32(b)), int(le.Uint32(b[4:])), le.Uint64(b[8:])
	r.Head.Rows, r.Head.RawBytes = int(le.Uint32(b[16:])), int(le.Uint32(b[20:]))
	r.Head.MinTs, r.Head.MaxTs = int64(le.Uint64(b[24:])), int64(le.Uint64(b[32:]))
	r.Head.Schema = int(le.Uint32(b[40:]))
	r.Payload = b[fixedBytes:]
	return r, r.Head.Seq > 0 && r.Head.Producer != ""
}

// appendEnd adds the record that ends a segment.
func appendEnd(b []byte, salt, at, frames, events uint64) []byte {
	from := len(b)
	b = append(b, make([]byte, headBytes)...)
	b = append(b, whatEnd)
	b = binary.LittleEndian.AppendUint64(b, frames)
	return seal(binary.LittleEndian.AppendUint64(b, events), from, salt, at)
}

// appendAcked adds a mark; acks has no salt and its marks no place, so that it
// can be written by anybody at any place.
func appendAcked(b []byte, s Stream, seq uint64) []byte {
	from := len(b)
	b = append(b, make([]byte, headBytes)...)
	b = append(b, whatAcked)
	b = appendName(b, s.Producer)
	b = binary.LittleEndian.AppendUint32(b, uint32(s.Lane))
	return seal(binary.LittleEndian.AppendUint64(b, seq), from, ackedSalt, 0)
}

const ackedSalt = 0x616b63 // any constant that is not a segment's

func parseAcked(body []byte) (s Stream, seq uint64, ok bool) {
	name, b, ok := cutName(body[1:])
	if !ok || len(b) != 12 {
		return s, 0, false
	}
	return Stream{name, int(binary.LittleEndian.Uint32(b))}, binary.LittleEndian.Uint64(b[4:]), true
}

func appendName(b []byte, s string) []byte { return append(append(b, byte(len(s))), s...) }

func cutName(b []byte) (string, []byte, bool) {
	if len(b) == 0 || len(b)-1 < int(b[0]) {
		return "", nil, false
	}
	return string(b[1 : 1+int(b[0])]), b[1+int(b[0]):], true
}

// parseEnd reads the body of an end record.
func parseEnd(body []byte) (frames, events uint64) {
	if len(body) != endBytes-headBytes {
		return 0, 0
	}
	return binary.LittleEndian.Uint64(body[1:]), binary.LittleEndian.Uint64(body[9:])
}
