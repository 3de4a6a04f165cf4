CREATE TABLE IF NOT EXISTS `db`.`things`
(
-- shared: event columns
  `provider` LowCardinality(String) CODEC(ZSTD(1)),
  `space` String CODEC(ZSTD(1)),
  `cause` String CODEC(ZSTD(1)),
  `delta` Int64 CODEC(T64, ZSTD(1)),
  `region` LowCardinality(String) CODEC(ZSTD(1)),
-- shared: place columns
  -- It finds candidates for repeats, which are then compared by the true columns. SELECT *,
  -- the sinks' insert and copies of rows do not see it.
  `identity`   UInt64 MATERIALIZED sipHash64(`type`, `provider`, `space`, `cause`) CODEC(NONE),
  INDEX i_identity identity TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX i_cause cause TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
-- shared: partition
ORDER BY (type, provider, space, ts, toUInt128(id))
SETTINGS
  -- A bill of one space reads 10,240 rows in ten parts, and 131,072 with the default.
  index_granularity = 1024,
-- shared: settings
COMMENT 'made by almanac, kind meter';

-- view things_recent
SELECT `ts`, `id`, `level`, `service`, `type`, `user_id`, `trace_id`, `span_id`, `message`, `attributes`, `provider`, `space`, `cause`, `delta`, `region`, `month`, `shard`, `pos` FROM `db`.`things` WHERE ts >= now64(9, 'UTC') - INTERVAL 24 HOUR;
