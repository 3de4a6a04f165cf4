CREATE TABLE IF NOT EXISTS {{.Table}}
(
{{template "columns.sql" .}}
  -- Of what tells series apart. Attributes come sorted, so that equal labels are equal maps.
  `series`     UInt128 MATERIALIZED reinterpretAsUInt128(murmurHash3_128(`type`, `service`, `user_id`, `unit`, `attributes`)) CODEC(ZSTD(1)),
  INDEX i_user user_id TYPE bloom_filter(0.01) GRANULARITY 1
)
ENGINE = MergeTree
{{template "partition.sql"}}
ORDER BY (type, series, ts, toUInt128(id))
SETTINGS
  -- One series of an hour reads few rows.
  index_granularity = 1024,
{{template "settings.sql"}}
COMMENT '{{.Mark}}'