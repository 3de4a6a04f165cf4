package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
)

// scanner reads the records of one file, one at a time, whatever became of the
// bytes between them.
type scanner struct {
	r    io.ReaderAt
	salt uint64
	size int64 // what there is to read; grows while the file is written
	at   int64 // the next record
	// placeless is for acks, whose records do not know their place.
	placeless bool

	body  []byte
	chunk []byte
}

// errTornRecord is a record that ends beyond the file; errNoRecord bytes that
// are none.
var (
	errTornRecord = errors.New("torn record")
	errNoRecord   = errors.New("no record")
)

// next is the body of the next record and the place behind it. At the end it is
// io.EOF; where bytes are not a record, *Damage, once, and the next call goes on
// behind them.
func (s *scanner) next() (body []byte, err error) {
	if s.at >= s.size {
		return nil, io.EOF
	}
	body, end, err := s.record(s.at)
	if err == nil {
		s.at = end
		return body, nil
	}
	if !errors.Is(err, errNoRecord) && !errors.Is(err, errTornRecord) {
		return nil, err
	}
	d := &Damage{From: s.at, To: s.size, Torn: true}
	if end > 0 && end <= s.size { // a head that is true, and another body
		d.To, d.Torn = end, false
	} else if found, err := s.find(s.at + 1); err != nil {
		return nil, err
	} else if found < s.size {
		d.To, d.Torn = found, false
	}
	s.at = d.To
	return nil, d
}

// record reads the record at a place. end is where it ends by its head, even
// when the body is not what the head says; 0 without a head.
func (s *scanner) record(at int64) (body []byte, end int64, err error) {
	var head [headBytes]byte
	if s.size-at < headBytes {
		return nil, 0, errTornRecord
	}
	if _, err := s.r.ReadAt(head[:], at); err != nil {
		return nil, 0, err
	}
	n, sum, ok := bodySize(head[:], s.salt, s.place(at))
	if !ok {
		return nil, 0, errNoRecord
	}
	end = at + headBytes + int64(n)
	if end > s.size {
		return nil, end, errTornRecord
	}
	if cap(s.body) < n {
		s.body = make([]byte, n)
	}
	s.body = s.body[:n]
	if _, err := s.r.ReadAt(s.body, at+headBytes); err != nil {
		return nil, end, err
	}
	if crc32.Checksum(s.body, castagnoli) != sum {
		return nil, end, errNoRecord
	}
	return s.body, end, nil
}

func (s *scanner) place(at int64) uint64 {
	if s.placeless {
		return 0
	}
	return uint64(at)
}

// find is the first place from at on where a whole record lies, or size.
func (s *scanner) find(at int64) (int64, error) {
	if s.chunk == nil {
		s.chunk = make([]byte, 64<<10)
	}
	var want [4]byte
	binary.LittleEndian.PutUint32(want[:], magic)
	for at < s.size {
		chunk := s.chunk[:min(int64(len(s.chunk)), s.size-at)]
		if _, err := s.r.ReadAt(chunk, at); err != nil {
			return 0, err
		}
		for from := 0; ; {
			i := bytes.Index(chunk[from:], want[:])
			if i < 0 {
				break
			}
			here := at + int64(from+i)
			if _, _, err := s.record(here); err == nil {
				return here, nil
			} else if !errors.Is(err, errNoRecord) && !errors.Is(err, errTornRecord) {
				return 0, err
			}
			from += i + 1
		}
		if int64(len(chunk)) == s.size-at {
			break
		}
		at += int64(len(chunk) - len(want) + 1) // a magic may lie across two chunks
	}
	return s.size, nil
}
