CREATE TABLE IF NOT EXISTS {{.Derived}}
(
  `month`       UInt32 CODEC(ZSTD(1)),
  `shard`       UInt64 CODEC(ZSTD(1)),
  `pos`         UInt64 CODEC(ZSTD(1)),
  `id`          UUID CODEC(ZSTD(1)),
  -- The event that counts in its place: what an erasure of that one has to look at again.
  `first`       UUID CODEC(ZSTD(1)),
  `first_month` UInt32 CODEC(ZSTD(1)),
  `first_shard` UInt64 CODEC(ZSTD(1)),
  -- The copy says something else than that event, as another delta of a diff.
  `other`       Bool CODEC(ZSTD(1)),
  -- Of the row with the id of zeros: how many rows the shard had up to its position.
  `rows`        UInt64 CODEC(ZSTD(1)),
  -- And how many marks. Later ones are more.
  `marks`       UInt64 CODEC(ZSTD(1))
)
-- Marking an event twice is the same row. The row with the id of zeros says up to which
-- position the shard was examined.
ENGINE = ReplacingMergeTree(pos)
PARTITION BY (month, shard)
ORDER BY (id, if(id = toUUID('00000000-0000-0000-0000-000000000000'), 0, pos))
SETTINGS
{{template "derived.sql" .}}