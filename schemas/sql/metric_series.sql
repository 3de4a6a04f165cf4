CREATE TABLE IF NOT EXISTS {{.Derived}}
(
  `month`   UInt32,
  `shard`   UInt64,
  `pos`     SimpleAggregateFunction(max, UInt64),
  `type`    LowCardinality(String),
  `series`  UInt128 CODEC(ZSTD(1)),
  `service` SimpleAggregateFunction(any, String) CODEC(ZSTD(1)),
  `user_id` SimpleAggregateFunction(any, String) CODEC(ZSTD(1)),
  `unit`    SimpleAggregateFunction(any, String) CODEC(ZSTD(1)),
  `labels`  SimpleAggregateFunction(any, Map(String, String)) CODEC(ZSTD(1)),
  `points`  SimpleAggregateFunction(groupUniqArrayArray, Array(String)) CODEC(ZSTD(1)),
  `first`   SimpleAggregateFunction(min, DateTime64(9, 'UTC')) CODEC(ZSTD(1)),
  `last`    SimpleAggregateFunction(max, DateTime64(9, 'UTC')) CODEC(ZSTD(1)),
  -- Of the row without a type: how many series the shard's list had with that fill.
  `listed`  SimpleAggregateFunction(max, UInt64) CODEC(ZSTD(1))
)
-- Filling twice is the same. The row without a type is the mark of each fill: no point has
-- none.
ENGINE = AggregatingMergeTree
PARTITION BY (month, shard)
ORDER BY (type, series)
SETTINGS
  index_granularity = 1024,
{{template "derived.sql" .}}