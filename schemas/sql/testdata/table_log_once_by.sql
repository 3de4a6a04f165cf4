CREATE TABLE IF NOT EXISTS `db`.`things`
(
-- shared: event columns
  `request` String CODEC(ZSTD(1)),
-- shared: place columns
  -- It finds candidates for repeats, which are then compared by the true columns. SELECT *,
  -- the sinks' insert and copies of rows do not see it.
  `identity`   UInt64 MATERIALIZED sipHash64(`service`, `request`) CODEC(NONE),
  INDEX i_identity identity TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
-- shared: partition
ORDER BY (ts, toUInt128(id))
SETTINGS
-- shared: settings
COMMENT 'made by almanac, once by service request';
