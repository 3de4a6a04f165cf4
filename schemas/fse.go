package schemas

import "math/bits"

// fseMaxLog and fseMinLog bound a table's accuracy (RFC 8878, 3.1.1.3.2.1.1 and 4.1.1).
// Offsets may have eight bits, lengths nine, of which the ninth gains nothing here.
const (
	fseMaxLog = 8
	fseMinLog = 5
)

// fseCodes is more codes than there are of either length or of offsets (36, 53, 32),
// and a power of two.
const fseCodes = 64

// fseTable encodes one of a sequence's three codes by Finite State Entropy (RFC 8878,
// 4.1). A state is a number from the table's size on to twice that; encoding a code
// writes the state's low bits and moves to another.
type fseTable struct {
	log     uint8 // the table has 1<<log states; 0: one code only, which takes no bits
	symbols [fseCodes]fseSymbol
	states  [1 << fseMaxLog]uint16
}

// fseSymbol says for one code how many bits of a state are written and where to go:
// bits = (state + deltaBits) >> 16, next = states[state>>bits + deltaState].
type fseSymbol struct {
	deltaBits  uint32
	deltaState int32
}

// start is the state after the last sequence, whose code costs no bits.
func (t *fseTable) start(code uint8) uint32 {
	s := &t.symbols[code&(fseCodes-1)]
	n := (s.deltaBits + 1<<15) >> 16
	return uint32(t.states[uint8(int32((n<<16-s.deltaBits)>>n)+s.deltaState)])
}

// single makes it a table of one code (RLE_Mode).
func (t *fseTable) single(code uint8) {
	t.log, t.symbols[code], t.states[0] = 0, fseSymbol{}, 0
}

// build makes the table of shares, which are of 1<<log states; -1 is a code that is
// rarer than one of them (RFC 8878, 4.1.1).
func (t *fseTable) build(shares []int16, log uint8) {
	t.log = log
	size := 1 << log
	var owner [1 << fseMaxLog]uint8 // of each state
	var next [fseCodes]uint16       // where a code's states begin
	high, total := size-1, 0
	for code, share := range shares {
		next[code] = uint16(total)
		s := &t.symbols[code]
		switch {
		case share == 0:
			continue
		case share == -1:
			owner[high] = uint8(code)
			high--
			share = 1
			fallthrough
		case share == 1:
			*s = fseSymbol{uint32(log)<<16 - uint32(size), int32(total - 1)}
		default:
			n := uint32(log) - uint32(bits.Len16(uint16(share-1))-1)
			*s = fseSymbol{n<<16 - uint32(share)<<n, int32(total) - int32(share)}
		}
		total += int(share)
	}
	step, at := size>>1+size>>3+3, 0
	for code, share := range shares {
		for range share {
			owner[at] = uint8(code)
			for at = (at + step) & (size - 1); at > high; at = (at + step) & (size - 1) {
			}
		}
	}
	for state, code := range owner[:size] {
		t.states[next[code&(fseCodes-1)]] = uint16(size + state)
		next[code&(fseCodes-1)]++
	}
}

// fseShares divides 1<<log states among codes that occur so often, n times in all, and
// returns them up to the last code that occurs. There are at least as many states as
// codes.
func fseShares(shares *[fseCodes]int16, counts *[fseCodes]uint32, n int, log uint8) []int16 {
	size, left, most, end := 1<<log, 1<<log, 0, 0
	for code, count := range counts {
		if count == 0 {
			shares[code] = 0
			continue
		}
		end = code + 1
		if int(count) <= n>>log {
			shares[code] = -1
			left--
			continue
		}
		shares[code] = int16(max(1, (int(count)*size+n/2)/n))
		left -= int(shares[code])
		if shares[code] > shares[most] {
			most = code
		}
	}
	for ; left < 0; left++ { // rounding gave too much: the commonest lose least
		for code, share := range shares[:end] {
			if share > shares[most] {
				most = code
			}
		}
		shares[most]--
	}
	shares[most] += int16(left)
	return shares[:end]
}

// fseLog is the accuracy for n codes of which so many differ.
func fseLog(n, codes int) uint8 {
	log := min(fseMaxLog, bits.Len(uint(n-1))-3)
	return uint8(max(log, fseMinLog, bits.Len(uint(codes))+1))
}

// appendShares writes a table's description (RFC 8878, 4.1.1).
func appendShares(out []byte, shares []int16, log uint8) []byte {
	acc, n := uint32(log-fseMinLog), uint(4)
	left, limit, width := 1<<log+1, 1<<log, uint(log)+1
	for code := 0; left > 1; {
		share := int(shares[code])
		code++
		most := 2*limit - 1 - left // values below it take a bit less
		left -= max(share, -share)
		value, size := share+1, width
		if value >= limit {
			value += most
		}
		if value < most {
			size--
		}
		acc |= uint32(value) << n
		n += size
		for left < limit {
			width--
			limit >>= 1
		}
		if share == 0 { // how many more zeros follow, in threes
			more := 0
			for shares[code+more] == 0 {
				more++
			}
			code += more
			for ; more >= 3; more -= 3 {
				acc |= 3 << n
				n += 2
				for ; n >= 8; n -= 8 {
					out, acc = append(out, byte(acc)), acc>>8
				}
			}
			acc |= uint32(more) << n
			n += 2
		}
		for ; n >= 8; n -= 8 {
			out, acc = append(out, byte(acc)), acc>>8
		}
	}
	if n > 0 {
		out = append(out, byte(acc))
	}
	return out
}
