CREATE TABLE IF NOT EXISTS `db`.`things`
(
-- shared: event columns
  `region` LowCardinality(String) CODEC(ZSTD(1)),
-- shared: place columns
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
-- shared: partition
ORDER BY (ts, toUInt128(id))
SETTINGS
-- shared: settings
COMMENT 'made by almanac';

-- view things_recent
SELECT `ts`, `id`, `level`, `service`, `type`, `user_id`, `trace_id`, `span_id`, `message`, `attributes`, `region`, `month`, `shard`, `pos` FROM `db`.`things` WHERE ts >= now64(9, 'UTC') - INTERVAL 24 HOUR;
