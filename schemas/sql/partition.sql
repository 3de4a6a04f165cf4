-- ignore() is the constant 0: the partition is the month and the shard alone,
-- but ts and pos become part of the key, so that every part keeps their minimum
-- and maximum. Reads by time prune parts without opening them, and the head of a
-- shard and the sink's assertion are answered from metadata.
PARTITION BY (month, shard, ignore(ts), ignore(pos))