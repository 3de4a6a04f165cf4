CREATE TABLE IF NOT EXISTS {{.Table}}
(
{{template "columns.sql" .}}
  -- Finds a document whose front was lost.
  INDEX i_doc doc_id TYPE bloom_filter(0.001) GRANULARITY 1,
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1,
  INDEX i_ts ts TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
{{template "partition.sql"}}
ORDER BY (path, created, doc_id, version)
SETTINGS
  -- A page of a path reads few rows.
  index_granularity = 1024,
{{template "settings.sql"}}
COMMENT '{{.Mark}}'