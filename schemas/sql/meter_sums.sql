CREATE TABLE IF NOT EXISTS {{.Derived}}
(
  `month`    UInt32,
  `shard`    UInt64,
  `pos`      SimpleAggregateFunction(max, UInt64),
  `type`     LowCardinality(String),
  `provider` LowCardinality(String),
  `space`    String CODEC(ZSTD(1)),
  `user_id`  String CODEC(ZSTD(1)),
  -- n diffs count, repeats do not.
  `n`        SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD(1)),
  `repeats`  SimpleAggregateFunction(sum, UInt64) CODEC(T64, ZSTD(1)),
  `delta`    SimpleAggregateFunction(sum, Int128) CODEC(ZSTD(1)),
  -- delta × milliseconds to the end of the month.
  `weighted` SimpleAggregateFunction(sum, Int128) CODEC(ZSTD(1)),
  -- By day of the month: n, repeats, delta, weighted.
  `days`     SimpleAggregateFunction(sumMap, Tuple(Array(UInt8), Array(UInt64), Array(UInt64), Array(Int128), Array(Int128))) CODEC(ZSTD(1))
)
-- The row without a space is the mark of each fill: no diff has none.
ENGINE = AggregatingMergeTree
PARTITION BY (month, shard)
ORDER BY (type, provider, space, user_id)
SETTINGS
  index_granularity = 1024,
{{template "derived.sql" .}}