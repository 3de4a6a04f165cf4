CREATE TABLE IF NOT EXISTS {{.Table}}
(
{{template "columns.sql" .}}
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX i_ts ts TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
{{template "partition.sql"}}
ORDER BY (`group`, timer_id, ts, seq)
SETTINGS
  -- The history of one timer reads few rows.
  index_granularity = 1024,
{{template "settings.sql"}}
COMMENT '{{.Mark}}'