package schemas

// ShardRef names a shard.
type ShardRef struct {
	Topic string
	Month Month
	ID    Shard
}

// String returns the shard's public name.
func (r ShardRef) String() string { return PublicShardName(r.Topic, r.Month, r.ID) }

// Subject returns the shard's subject in SHARDS.
func (r ShardRef) Subject() string { return ShardSubject(r.Topic, r.Month, r.ID) }

// PartitionID returns ClickHouse's id of the shard's partition.
func (r ShardRef) PartitionID() string { return PartitionID(r.Month, r.ID) }
