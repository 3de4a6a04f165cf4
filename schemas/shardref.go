package schemas

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Shard is a shard's id, 16 hex digits in names and UInt64 in tables: the first byte is the shard's lane, the
// rest is random. So a lane's shards are a range of ids: its rows are found in a table without asking the registry.
type Shard uint64

// LaneShift is where a shard's id has its lane, of which there are at most MaxLanes.
const LaneShift = 56

// NewShard draws the id of a shard of a lane.
func NewShard(lane int) Shard { return Shard(uint64(lane)<<LaneShift | rand.Uint64()>>(64-LaneShift)) }

// Lane is the shard's lane.
func (s Shard) Lane() int { return int(s >> LaneShift) }

// String is the 16 hex digits.
func (s Shard) String() string { return fmt.Sprintf("%016x", uint64(s)) }

// ParseShard reads 16 lower-case hex digits.
func ParseShard(s string) (Shard, error) {
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil || Shard(v).String() != s {
		return 0, fmt.Errorf("%w: %q is not 16 lower-case hex digits", ErrShardName, s)
	}
	return Shard(v), nil
}

// PublicShardName is <topic>-registry:<YYYY-MM>:shard:<16 hex>, the name people
// see (a registry key may not hold a colon).
func PublicShardName(topic string, m Month, s Shard) string {
	return topic + "-registry:" + m.String() + ":shard:" + s.String()
}

// ParsePublicShardName reads a public name.
func ParsePublicShardName(name string) (r ShardRef, err error) {
	part := strings.Split(name, ":")
	if len(part) == 4 && part[2] == "shard" {
		r.Topic = strings.TrimSuffix(part[0], "-registry")
		if r.Month, err = ParseMonth(part[1]); err == nil {
			r.ID, err = ParseShard(part[3])
		}
	}
	if err != nil || r.String() != name {
		return ShardRef{}, fmt.Errorf("%w: %.200q is not <topic>-registry:<YYYY-MM>:shard:<16 hex digits>", ErrShardName, name)
	}
	return r, nil
}

// ShardRef names a shard.
type ShardRef struct {
	Topic string
	Month Month
	ID    Shard
}

// String returns the shard's public name.
func (r ShardRef) String() string { return PublicShardName(r.Topic, r.Month, r.ID) }

// PartitionID returns ClickHouse's id of the shard's partition.
func (r ShardRef) PartitionID() string { return PartitionID(r.Month, r.ID) }

// Stored is what ClickHouse holds of a shard.
type Stored struct {
	Rows         uint64
	MinTs, MaxTs int64  // unix ns
	Head         uint64 // the highest position
}

// PartitionID is ClickHouse's id of the shard's partition. The two trailing
// zeros are the constant ignore(ts) and ignore(pos) of the partition key.
func PartitionID(m Month, s Shard) string {
	return fmt.Sprintf("%d-%d-0-0", uint32(m), uint64(s))
}
