CREATE TABLE IF NOT EXISTS `db`.`things`
(
-- shared: event columns
  `request_id` String CODEC(ZSTD(1)),
  `scope` LowCardinality(String) CODEC(ZSTD(1)),
  `method` LowCardinality(String) CODEC(ZSTD(1)),
  `resource_type` LowCardinality(String) CODEC(ZSTD(1)),
  `resource` String CODEC(ZSTD(1)),
  `category` LowCardinality(String) CODEC(ZSTD(1)),
  `state` LowCardinality(String) CODEC(ZSTD(1)),
  `before` String CODEC(ZSTD(6)),
  `after` String CODEC(ZSTD(6)),
  `before_bytes` Int64 CODEC(T64, ZSTD(1)),
  `after_bytes` Int64 CODEC(T64, ZSTD(1)),
  `region` LowCardinality(String) CODEC(ZSTD(1)),
-- shared: place columns
  -- It finds candidates for repeats, which are then compared by the true columns. SELECT *,
  -- the sinks' insert and copies of rows do not see it.
  `identity`   UInt64 MATERIALIZED sipHash64(`request_id`, `resource`, `type`, `state`, `ts`) CODEC(NONE),
  INDEX i_identity identity TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1,
  -- The events of one request are few, and looked for in every part.
  INDEX i_request request_id TYPE bloom_filter(0.001) GRANULARITY 1,
  INDEX i_resource resource TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
-- shared: partition
ORDER BY (ts, toUInt128(id))
SETTINGS
-- shared: settings
COMMENT 'made by almanac, kind audit';

-- view things_recent
SELECT `ts`, `id`, `level`, `service`, `type`, `user_id`, `trace_id`, `span_id`, `message`, `attributes`, `request_id`, `scope`, `method`, `resource_type`, `resource`, `category`, `state`, `before`, `after`, `before_bytes`, `after_bytes`, `region`, `month`, `shard`, `pos` FROM `db`.`things` WHERE ts >= now64(9, 'UTC') - INTERVAL 24 HOUR;
