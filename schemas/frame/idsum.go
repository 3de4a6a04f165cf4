package frame

import "github.com/go-faster/city"

// IDSum is the sum modulo 2^64 of one number for each event, made of its id and its
// time. It does not depend on the order of the events, and sums of frames add up. So
// rows of a table are the events of some frames when their counts and sums are equal:
// one id or time that was replaced is missed by chance, 1 in 2^64.
//
// No other column is in it. Erasures take whole rows, whose sums the registry keeps;
// anonymising clears any column but these two, for good.
func (r *Reader) IDSum() uint64 {
	return idSum(r.columns[inID].fixed, r.rows, r.Ts)
}

// IDSum is Reader.IDSum of the events that the builder has.
func (b *Builder) IDSum() uint64 {
	return idSum(b.ids, len(b.ts), func(i int) int64 { return b.ts[i] })
}

// idSum adds up the events of which ids has the ids as a frame does: two
// little-endian halves each, which is how ClickHouse keeps and hashes a UUID.
func idSum(ids []byte, n int, ts func(i int) int64) (sum uint64) {
	for i := range n {
		sum += hash128to64(city.CH64(ids[16*i:16*i+16]), intHash64(uint64(ts(i))))
	}
	return sum
}

// intHash64 is what ClickHouse's cityHash64 makes of a number: the finaliser of
// MurmurHash3 over it and a constant of ClickHouse's own.
func intHash64(x uint64) uint64 {
	x ^= 0x4cf2d2baae6da887
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// hash128to64 is how cityHash64 joins the hashes of two columns: CityHash's Hash128to64.
func hash128to64(lo, hi uint64) uint64 {
	const mul = 0x9ddfea08eb382d69
	a := (lo ^ hi) * mul
	a ^= a >> 47
	b := (hi ^ a) * mul
	b ^= b >> 47
	return b * mul
}
