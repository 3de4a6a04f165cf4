CREATE TABLE IF NOT EXISTS {{.Table}}
(
  key String,
  -- How often the entry was written, and when that came here.
  count UInt64,
  at DateTime64(9, 'UTC') DEFAULT now64(9),
  -- Empty: the entry was forgotten.
  value String,
  -- The rows of this ClickHouse are without what the erasure means.
  applied Bool
)
ENGINE = MergeTree ORDER BY (key, count, at)
-- What is answered is on disk.
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1
COMMENT 'Almanac: the third copy of the ledger'
