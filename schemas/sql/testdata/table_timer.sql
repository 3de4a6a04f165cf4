CREATE TABLE IF NOT EXISTS `db`.`things`
(
-- shared: event columns
  `group` LowCardinality(String) CODEC(ZSTD(1)),
  `timer_id` String CODEC(ZSTD(1)),
  `life` String CODEC(ZSTD(1)),
  `slot` Int64 CODEC(T64, ZSTD(1)),
  `revision` Int64 CODEC(T64, ZSTD(1)),
  `attempt` Int64 CODEC(T64, ZSTD(1)),
  `state` LowCardinality(String) CODEC(ZSTD(1)),
  `due` DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)),
  `host` LowCardinality(String) CODEC(ZSTD(1)),
  `status` Int64 CODEC(T64, ZSTD(1)),
  `error` LowCardinality(String) CODEC(ZSTD(1)),
  `detail` String CODEC(ZSTD(1)),
  `took_ms` Float64 CODEC(ZSTD(1)),
  `late_ms` Float64 CODEC(ZSTD(1)),
  `spec` String CODEC(ZSTD(3, 20)),
  `seq` Int64 CODEC(Delta(8), ZSTD(1)),
  `region` LowCardinality(String) CODEC(ZSTD(1)),
-- shared: place columns
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX i_ts ts TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
-- shared: partition
ORDER BY (`group`, timer_id, ts, seq)
SETTINGS
  -- The history of one timer reads few rows.
  index_granularity = 1024,
-- shared: settings
COMMENT 'made by almanac, kind timer';

-- view things_recent
SELECT `ts`, `id`, `level`, `service`, `type`, `user_id`, `trace_id`, `span_id`, `message`, `attributes`, `group`, `timer_id`, `life`, `slot`, `revision`, `attempt`, `state`, `due`, `host`, `status`, `error`, `detail`, `took_ms`, `late_ms`, `spec`, `seq`, `region`, `month`, `shard`, `pos` FROM `db`.`things` WHERE ts >= now64(9, 'UTC') - INTERVAL 24 HOUR;

-- view things_latest
SELECT t.`group` AS `group`, t.timer_id AS timer_id, argMax(t.slot, t.seq) AS slot, argMax(t.life, t.seq) AS life, if(argMax(t.state, t.seq) IN ('firing', 'done', 'failed', 'cancelled'), argMax(t.state, t.seq), 'pending') AS state, argMax(t.due, t.seq) AS due,
 argMax(t.revision, t.seq) AS revision, argMax(t.attempt, t.seq) AS attempt, argMax(t.status, t.seq) AS status,
 if(argMax(t.state, t.seq) IN ('done', 'failed'), argMax(toNullable(t.ts), t.seq), NULL) AS executed_at,
 argMaxIf(toNullable(t.ts), t.seq, t.state = 'created') AS created_at, argMax(t.ts, t.seq) AS updated_at
 FROM `db`.`things` AS t GROUP BY t.`group`, t.timer_id;
