SELECT table AS topic,
 toUInt32(splitByChar('-', partition_id)[1]) AS month,
 lower(leftPad(hex(toUInt64(splitByChar('-', partition_id)[2])), 16, '0')) AS shard,
 sum(rows) AS stored_rows, count() AS parts, sum(bytes_on_disk) AS disk_bytes, sum(data_uncompressed_bytes) AS raw_bytes,
 min(min_time) AS first_event, max(max_time) AS last_event
 FROM system.parts WHERE active AND {{.In}} GROUP BY table, partition_id
