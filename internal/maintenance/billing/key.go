package billing

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
)

// Key is what a bill is for.
type Key struct {
	Meter    string `json:"meter,omitempty"`
	Provider string `json:"provider,omitempty"`
	Space    string `json:"space,omitempty"`
	Customer string `json:"customer,omitempty"`
}

func keyOf(b *usage.Bill) Key { return Key{b.Meter, b.Provider, b.Space, b.Customer} }

// String is the key for people.
func (k Key) String() string {
	return strings.Join(strings.Fields(k.Meter+" "+k.Provider+" "+k.Space+" "+k.Customer), " ")
}

// compare orders keys as reports do.
func (k Key) compare(o Key) int {
	for _, pair := range [][2]string{{k.Meter, o.Meter}, {k.Provider, o.Provider}, {k.Space, o.Space}, {k.Customer, o.Customer}} {
		if c := strings.Compare(pair[0], pair[1]); c != 0 {
			return c
		}
	}
	return 0
}

// digest is of all its parts, told apart.
func digest(parts ...any) [sha256.Size]byte {
	text, _ := json.Marshal(parts) // strings, numbers and keys
	return sha256.Sum256(text)
}

// bucket is which of so many buckets has the key.
func (k Key) bucket(of int) int {
	sum := digest("bucket", k)
	return int(hash(sum[:]) % uint64(of))
}

// id is the event of a revision of a key's bill: the same in every attempt.
func (r *Request) id(k Key, revision int) schemas.ID {
	sum := digest("bill", r.Topic, r.Month.String(), r.Into, k, revision)
	return schemas.DerivedID(r.Month.End(), hash(sum[:]), hash(sum[8:]))
}

// producer sends the frames of schemas.MaxInFlight buckets of a round, by sequence.
func (r *Request) producer(round, bucket int) (name string, seq uint64) {
	sum := digest("round", r.Topic, r.Month.String(), r.Into, round, bucket/schemas.MaxInFlight)
	return hex.EncodeToString(sum[:8]), uint64(bucket%schemas.MaxInFlight + 1)
}

// run names positions.
func (r *Request) run(at usage.Positions) string {
	sum := digest("positions", r.Topic, r.Month.String(), positionsText(at))
	return hex.EncodeToString(sum[:8])
}

// positionsText is positions by the names of shards; a map in JSON is in order.
func positionsText(at usage.Positions) map[string]uint64 {
	out := make(map[string]uint64, len(at))
	for ref, pos := range at {
		out[ref.Month.String()+"."+ref.ID.String()] = pos
	}
	return out
}

// parsePositions reads what positionsText wrote into at.
func parsePositions(topic, text string, at usage.Positions) error {
	var named map[string]uint64
	if err := json.Unmarshal([]byte(text), &named); err != nil {
		return fmt.Errorf("positions: %w", err)
	}
	for name, pos := range named {
		month, id, _ := strings.Cut(name, ".")
		m, err := schemas.ParseMonth(month)
		if err != nil {
			return err
		}
		s, err := schemas.ParseShard(id)
		if err != nil {
			return err
		}
		at[schemas.ShardRef{Topic: topic, Month: m, ID: s}] = pos
	}
	return nil
}

// hash is eight bytes of a digest.
func hash(sum []byte) uint64 { return binary.BigEndian.Uint64(sum[:8]) }
