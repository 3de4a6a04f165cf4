package request

import (
	"context"

	"github.com/klauspost/compress/s2"

	"github.com/almanac-events/almanac/internal/gateway/pool"
)

// Snappy unpacks a body that is one snappy block, and returns the size that the block says. One
// of more than most bytes is not unpacked.
func Snappy(body []byte, most int) (plain []byte, size int, err error) {
	if size, err = s2.DecodedLen(body); err != nil || size > most {
		return nil, size, err
	}
	plain, err = s2.Decode(nil, body)
	return plain, size, err
}

// GrowSnappy reserves weight bytes for each byte that Snappy is to unpack.
func GrowSnappy(ctx context.Context, req *pool.Request, body []byte, most, weight int) error {
	size, err := s2.DecodedLen(body)
	if err != nil || size > most {
		return nil // Snappy refuses it
	}
	return req.Grow(ctx, size*weight)
}
