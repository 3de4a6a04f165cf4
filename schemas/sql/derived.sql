  non_replicated_deduplication_window = 1000,
  fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1,
  old_parts_lifetime = 120
COMMENT '{{.Mark}}'
