-- The rows with the id of zeros say up to which position a shard was examined; the last of them counts. Marks are
-- stored before it, and one statement reads both. The last column counts what merges have not made one yet.
SELECT month, shard,
  maxIf(pos, id = toUUID('00000000-0000-0000-0000-000000000000')),
  argMaxIf(rows, pos, id = toUUID('00000000-0000-0000-0000-000000000000')),
  uniqExactIf((id, pos), id != toUUID('00000000-0000-0000-0000-000000000000')),
  argMaxIf(first_shard, pos, id = toUUID('00000000-0000-0000-0000-000000000000')),
  argMaxIf(marks, pos, id = toUUID('00000000-0000-0000-0000-000000000000')),
  countIf(id != toUUID('00000000-0000-0000-0000-000000000000'))
FROM {{.Repeats}}
GROUP BY month, shard
