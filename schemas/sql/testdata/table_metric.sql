CREATE TABLE IF NOT EXISTS `db`.`things`
(
-- shared: event columns
  `value` Float64 CODEC(Gorilla, ZSTD(1)),
  `unit` LowCardinality(String) CODEC(ZSTD(1)),
  `points` LowCardinality(String) CODEC(ZSTD(1)),
  `start` DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)),
  `count` Int64 CODEC(T64, ZSTD(1)),
  `sum` Float64 CODEC(ZSTD(1)),
  `min` Float64 CODEC(ZSTD(1)),
  `max` Float64 CODEC(ZSTD(1)),
  `m2` Float64 CODEC(ZSTD(1)),
  `buckets` String CODEC(ZSTD(3)),
  `region` LowCardinality(String) CODEC(ZSTD(1)),
-- shared: place columns
  -- Of what tells series apart. Attributes come sorted, so that equal labels are equal maps.
  `series`     UInt128 MATERIALIZED reinterpretAsUInt128(murmurHash3_128(`type`, `service`, `user_id`, `unit`, `attributes`)) CODEC(ZSTD(1)),
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
-- shared: partition
ORDER BY (type, series, ts, toUInt128(id))
SETTINGS
  -- One series of an hour reads few rows.
  index_granularity = 1024,
-- shared: settings
COMMENT 'made by almanac, kind metric';

-- view things_recent
SELECT `ts`, `id`, `level`, `service`, `type`, `user_id`, `trace_id`, `span_id`, `message`, `attributes`, `value`, `unit`, `points`, `start`, `count`, `sum`, `min`, `max`, `m2`, `buckets`, `region`, `month`, `shard`, `pos` FROM `db`.`things` WHERE ts >= now64(9, 'UTC') - INTERVAL 24 HOUR;
