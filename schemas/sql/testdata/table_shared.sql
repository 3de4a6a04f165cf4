-- shared: event columns
  `ts`         DateTime64(9, 'UTC') CODEC(Delta(8), ZSTD(1)),
  `id`         UUID CODEC(ZSTD(1)),
  `level`      LowCardinality(String) CODEC(ZSTD(1)),
  `service`    LowCardinality(String) CODEC(ZSTD(1)),
  `type`       LowCardinality(String) CODEC(ZSTD(1)),
  `user_id`    String CODEC(ZSTD(3)),
  `trace_id`   String CODEC(ZSTD(1)),
  `span_id`    String CODEC(ZSTD(1)),
  -- Three quarters of a row on disk. The 20 lets a match lie up to a megabyte back,
  -- the length of a compressed block: what services say again lies far apart. Both
  -- take 4.6 bytes of an event's 29.6 in the bench, level 3 alone 3.5, for at most 0.1
  -- microseconds more of an insert's 1.3; level 6 alone takes 4.6 too, for 1.4.
  `message`    String CODEC(ZSTD(3, 20)),
  `attributes` Map(LowCardinality(String), String) CODEC(ZSTD(3)),
-- shared: place columns
  `month`      UInt32 CODEC(ZSTD(1)),
  `shard`      UInt64 CODEC(ZSTD(1)),
  `pos`        UInt64 CODEC(ZSTD(3)),
  -- Events of one time are in the order of ids as numbers: ORDER BY ts, id_order.
  `id_order`   UInt128 ALIAS toUInt128(`id`),
-- shared: partition
-- ignore() is the constant 0: the partition is the month and the shard alone,
-- but ts and pos become part of the key, so that every part keeps their minimum
-- and maximum. Reads by time prune parts without opening them, and the head of a
-- shard and the sink's assertion are answered from metadata.
PARTITION BY (month, shard, ignore(ts), ignore(pos))
-- shared: settings
  -- Inserts per table whose tokens are remembered: twenty seconds, the longest
  -- an insert may take, at 500 inserts a second.
  non_replicated_deduplication_window = 10000,
  -- Lightweight deletes as patch parts need both.
  enable_block_number_column = 1, enable_block_offset_column = 1,
  -- What is answered is on disk.
  fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1,
  -- Parts that a merge replaced stay for those who read them. Their merge is on disk
  -- by the line above, so that they need not stay for the 480 seconds of the default:
  -- what the disk holds is mostly these, at rates where small parts are merged.
  old_parts_lifetime = 120,
  -- An insert is a part of one data file and not of forty, however large its events:
  -- an event's share of the fsyncs takes an eighth of the time, and no more CPU.
  -- 270,000 is above any batch of the sinks; what was merged beyond has a file a
  -- column, which takes 7 % less.
  min_rows_for_wide_part = 270000,
  -- A merge costs more than the insert did (2 against 1.2 microseconds of CPU a
  -- row), so small parts are merged by many at once, and what would get larger than
  -- 64 MiB waits until the shard is closed; then the sink merges all of it. A range
  -- of parts is merged when it has base times the size of its largest part, where a
  -- part counts as 5 MiB more than it has, and base falls to 2 as a shard comes to
  -- have fifty: 100 merges some forty small parts at once, and never a few of them
  -- with a large one. So rows are rewritten as often as the logarithm of a shard's
  -- size by twenty to forty says. 400 inserts of 1,000 rows: 1.6 times, levels up to
  -- 3; with base 50, 20 and 5, the default: 2.0, 3.1 and 11 times; with base 5 and
  -- twenty parts at least: 8.6 times, since there every large part was rewritten for
  -- nineteen small ones. At full load inserts are above a twentieth of 64 MiB, and
  -- wait for the shard's end. One that is quiet for six hours is merged whole too.
  merge_selector_base = 100, min_parts_to_merge_at_once = 20,
  max_bytes_to_merge_at_max_space_in_pool = 67108864,
  -- Above the 700 that a shard of 2 GiB can come to that way: parts of a twentieth of
  -- 64 MiB, and fifty.
  parts_to_delay_insert = 3000, parts_to_throw_insert = 5000,
  min_age_to_force_merge_seconds = 21600, min_age_to_force_merge_on_partition_only = 1
