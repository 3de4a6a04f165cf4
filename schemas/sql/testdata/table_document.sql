CREATE TABLE IF NOT EXISTS `db`.`things`
(
-- shared: event columns
  `doc_id` String CODEC(ZSTD(1)),
  `path` String CODEC(ZSTD(1)),
  `created` DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)),
  `version` Int64 CODEC(T64, ZSTD(1)),
  `op` LowCardinality(String) CODEC(ZSTD(1)),
  `by` String CODEC(ZSTD(1)),
  `body` String CODEC(ZSTD(3, 20)),
  `seq` Int64 CODEC(Delta(8), ZSTD(1)),
  `region` LowCardinality(String) CODEC(ZSTD(1)),
-- shared: place columns
  -- Finds a document whose front was lost.
  INDEX i_doc doc_id TYPE bloom_filter(0.001) GRANULARITY 1,
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX i_ts ts TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
-- shared: partition
ORDER BY (path, created, doc_id, version)
SETTINGS
  -- A page of a path reads few rows.
  index_granularity = 1024,
-- shared: settings
COMMENT 'made by almanac, kind document';

-- view things_recent
SELECT `ts`, `id`, `level`, `service`, `type`, `user_id`, `trace_id`, `span_id`, `message`, `attributes`, `doc_id`, `path`, `created`, `version`, `op`, `by`, `body`, `seq`, `region`, `month`, `shard`, `pos` FROM `db`.`things` WHERE ts >= now64(9, 'UTC') - INTERVAL 24 HOUR;

-- view things_latest
SELECT * FROM `db`.`things` WHERE op != 'removed' AND (doc_id, seq) IN (SELECT doc_id, max(seq) FROM `db`.`things` GROUP BY doc_id);
