-- The table's own lifetime, which may be one that it was made with by another release.
SELECT count(), sum(bytes_on_disk), toUInt64(max(toUnixTimestamp(remove_time))),
  (SELECT toUInt64OrZero(extract(create_table_query, 'old_parts_lifetime = (\\d+)')) FROM system.tables WHERE database = {{.Database}} AND name = {{.Table}})
FROM system.parts
WHERE database = {{.Database}} AND table = {{.Table}} AND NOT active AND partition_id = {{.Partition}} AND modification_time <= fromUnixTimestamp({{.UpTo}})
