-- sql.Insert
INSERT INTO `db`.`things` (`ts`, `id`, month, shard, pos)
SELECT `ts`, `id`, 202601, 5, _pos
FROM (SELECT 1)
WHERE throwIf((SELECT max(pos) FROM `db`.`things` WHERE month = 202601 AND shard = 5) != 7, 'moved') = 0
  AND throwIf(nowInBlock() > now() + 20, 'tardy') = 0
  AND 1
FORMAT Native;

-- sql.Insert
INSERT INTO `db`.`things` (`ts`, `id`, month, shard, pos)
SELECT `ts`, `id`, 202601, 5, _pos
FROM (SELECT 1)
WHERE throwIf((SELECT max(pos) FROM `db`.`things` WHERE month = 202601 AND shard = 5) != 7, 'moved') = 0
  AND throwIf(nowInBlock() > now() + 20, 'tardy') = 0
  AND 1 AND (user_id = {u:String})
FORMAT Native;

-- sql.InsertMissing
INSERT INTO `db`.`things` (`ts`, `id`, month, shard, pos)
SELECT `ts`, `id`, 202601, 5, _pos
FROM (
  SELECT *, sipHash128(`ts`, `id`, toUInt64(_pos)) AS _hash, row_number() OVER (PARTITION BY _hash) AS _nth
  FROM (SELECT 1)
  WHERE 1) AS f
LEFT JOIN (
  SELECT sipHash128(`ts`, `id`, pos) AS _there, count() AS _have
  FROM `db`.`things`
  WHERE month = 202601 AND shard = 5 AND pos > 3 AND pos <= 9
  GROUP BY _there) AS h ON f._hash = h._there
WHERE _nth > _have AND (1)
FORMAT Native;

-- sql.CopyRows
INSERT INTO b (`ts`, `id`)
SELECT `ts`, `id`
FROM a
WHERE month = 202601 AND shard = 5 AND pos > 3 AND pos <= 9
  AND throwIf((SELECT count() FROM b WHERE month = 202601 AND shard = 5 AND pos > 3) != 0, 'moved') = 0;

-- sql.Twins
SELECT toString(a.id), toUnixTimestamp64Nano(a.ts), a.pos, b.there
FROM (
  SELECT id, ts, pos, sipHash128(* EXCEPT pos) AS _hash
  FROM `db`.`things`
  WHERE month = 202601 AND shard = 5 AND (pos, id, ts) IN ((1,'2',3))) AS a
INNER JOIN (
  SELECT pos AS there, sipHash128(* EXCEPT pos) AS _hash
  FROM `db`.`things`
  WHERE month = 202601 AND shard = 5
    AND id IN (SELECT id FROM `db`.`things` WHERE month = 202601 AND shard = 5 AND (pos, id, ts) IN ((1,'2',3)))) AS b ON a._hash = b._hash
WHERE a.pos != b.there
FORMAT TSV;

-- sql.CountTwins
SELECT toUInt64(countIf(sipHash128(* EXCEPT pos) IN (
  SELECT sipHash128(* EXCEPT pos)
  FROM `db`.`things`
  WHERE month = 202601 AND shard = 5 AND NOT (pos > 3 AND pos <= 9)
    AND id IN (SELECT id FROM `db`.`things` WHERE month = 202601 AND shard = 5 AND pos > 3 AND pos <= 9))))
FROM `db`.`things`
WHERE month = 202601 AND shard = 5 AND pos > 3 AND pos <= 9;

-- sql.NewestDocuments
SELECT doc_id, n.1, n.2, n.3, n.4, n.5, n.6, n.7, n.8, concat('/', n.9)
FROM (
  SELECT doc_id, argMax((op, toUnixTimestamp64Nano(created), toUnixTimestamp64Nano(ts), version, seq, length(body), month, shard, path), seq) AS n
  FROM `db`.`things`
  WHERE 1
  GROUP BY doc_id)
ORDER BY doc_id
FORMAT TSV;

-- sql.MeantDocuments
SELECT doc_id, argMax(meant, at), min(meant), argMax(toUnixTimestamp64Nano(created), at), argMax(version, at), concat('/', argMax(path, at))
FROM (
  SELECT doc_id, created, path, (user_id = {u:String}) AS meant, seq AS at, version
  FROM `db`.`things`
  WHERE 1 AND doc_id > {after:String})
GROUP BY doc_id
HAVING max(meant)
ORDER BY doc_id
LIMIT 9
FORMAT TSV;

-- sql.NewestTimers
SELECT g, i, n.1, n.2, n.3, n.4, n.5, n.6, n.7, n.8, n.9, n.10
FROM (
  SELECT g, i, argMax((life, slot, op, revision, attempt, due, ts, seq, begun, spec), seq) AS n
  FROM (
    SELECT t.`group` AS g, t.timer_id AS i, t.life AS life, argMax(t.slot, t.seq) AS slot, argMax(t.state, t.seq) AS op, argMax(t.revision, t.seq) AS revision,
      argMax(t.attempt, t.seq) AS attempt, argMax(toUnixTimestamp64Nano(t.due), t.seq) AS due, argMax(toUnixTimestamp64Nano(t.ts), t.seq) AS ts, max(t.seq) AS seq,
      max(t.state IN ('created', 'restored')) AS begun, max(t.spec != '') AS spec
    FROM `db`.`things` AS t
    WHERE 1
    GROUP BY g, i, life)
  GROUP BY g, i)
FORMAT TSV;

-- sql.TimerLives
SELECT t.life AS life, t.revision AS revision, argMaxIf(t.spec, t.seq, t.spec != '') AS spec, argMax(t.user_id, t.seq) AS user_id,
  toUnixTimestamp64Nano(minIf(t.ts, t.state = 'created')) AS created_at, toUnixTimestamp64Nano(minIf(t.ts, t.state = 'firing')) AS first
FROM `db`.`things` AS t
WHERE 1 AND t.life IN {lives:Array(String)}
GROUP BY life, revision
ORDER BY life, revision
FORMAT JSONEachRow;

-- sql.MeantTimers
SELECT `group`, timer_id, argMax(slot, seq), argMax(life, seq)
FROM `db`.`things`
WHERE 1 AND (`group`, timer_id) > ({after_group:String}, {after_id:String}) AND (user_id = {u:String})
GROUP BY `group`, timer_id
ORDER BY `group`, timer_id
LIMIT 9
FORMAT TSV;

-- sql.Leftovers
SELECT count(), sum(bytes_on_disk), toUInt64(max(toUnixTimestamp(remove_time))),
  (SELECT toUInt64OrZero(extract(create_table_query, 'old_parts_lifetime = (\\d+)')) FROM system.tables WHERE database = 'db' AND name = 'things')
FROM system.parts
WHERE database = 'db' AND table = 'things' AND NOT active AND partition_id = 'p' AND modification_time <= fromUnixTimestamp(99);

-- sql.Marked
SELECT month, shard,
  maxIf(pos, id = toUUID('00000000-0000-0000-0000-000000000000')),
  argMaxIf(rows, pos, id = toUUID('00000000-0000-0000-0000-000000000000')),
  uniqExactIf((id, pos), id != toUUID('00000000-0000-0000-0000-000000000000')),
  argMaxIf(first_shard, pos, id = toUUID('00000000-0000-0000-0000-000000000000')),
  argMaxIf(marks, pos, id = toUUID('00000000-0000-0000-0000-000000000000')),
  countIf(id != toUUID('00000000-0000-0000-0000-000000000000'))
FROM `db`.`things.repeats`
GROUP BY month, shard;

-- sql.TimerCalls
SELECT t.`group` AS `group`, count() AS calls, countIf(t.state = 'done') AS done, countIf(t.state = 'failed') AS failed, countIf(t.state = 'retry') AS retry,
  countIf(t.state = 'rescheduled') AS rescheduled, round(quantile(0.5)(t.late_ms), 3) AS late_p50_ms, round(quantile(0.99)(t.late_ms), 3) AS late_p99_ms,
  round(quantile(0.99)(t.took_ms), 3) AS took_p99_ms
FROM `db`.`things` AS t
WHERE t.ts >= now64(9) - toIntervalNanosecond(60) AND t.state IN ('done', 'failed', 'retry', 'rescheduled')
  AND (t.status != 0 OR t.error NOT IN ('', 'too-late'))
GROUP BY t.`group`
ORDER BY t.`group`
FORMAT JSONEachRow;

-- sql.TimerRefused
SELECT t.`group` AS `group`, countIf(t.state = 'failed') AS failed, toUnixTimestamp64Nano(max(t.ts)) AS at,
  argMax(t.status, (t.ts, t.seq)) AS status, argMax(t.error, (t.ts, t.seq)) AS error
FROM `db`.`things` AS t
WHERE t.ts >= now64(9) - toIntervalNanosecond(60) AND t.state IN ('done', 'failed')
GROUP BY t.`group`
HAVING argMax(t.state, (t.ts, t.seq)) = 'failed'
ORDER BY t.`group`
FORMAT JSONEachRow;

-- sql.FrontRows
SELECT seq AS seq, toUnixTimestamp64Nano(ts) AS t, version AS says, month AS m, shard AS s
FROM `db`.`things`
WHERE month IN (202601) AND ts >= a AND ts <= b AND seq IN (1,2)
FORMAT JSONEachRow;

-- sql.Positions
SELECT pos, count()
FROM `db`.`things`
WHERE 1 AND pos > 3 AND pos <= 9
GROUP BY pos
ORDER BY pos
FORMAT TSV;

-- sql.Positions
SELECT pos, count()
FROM `db`.`things`
WHERE 1 AND pos > 3 AND pos <= 9
GROUP BY pos
ORDER BY pos
LIMIT 7
FORMAT TSV;

-- sql.StoredRows
SELECT ts, pos
FROM `db`.`things`
WHERE 1 AND pos > 3 AND pos <= 9
ORDER BY pos, ts, toUInt128(id)
FORMAT Native;

-- sql.StoredIDs
SELECT DISTINCT concat(toString(toUnixTimestamp64Nano(ts)), ' ', toString(id))
FROM `db`.`things`
WHERE month = 202601 AND ts >= fromUnixTimestamp64Nano(1, 'UTC') AND ts <= fromUnixTimestamp64Nano(2, 'UTC') AND id IN ('a', 'b')
FORMAT TSV;

-- sql.WeightedIDs
WITH CAST([5,6], 'Array(UInt64)') AS _shards
SELECT month, shard, sumWithOverflow(_hash), sumWithOverflow(_hash * greatest(pos, transform(shard, _shards, CAST([3,1], 'Array(UInt64)'), toUInt64(0))))
FROM (
  SELECT month, shard, pos, cityHash64(id) AS _hash
  FROM `db`.`things`
  WHERE 1 AND pos <= transform(shard, _shards, CAST([9,8], 'Array(UInt64)'), toUInt64(0)))
GROUP BY month, shard;

-- sql.AtPositions
SELECT month, shard, pos, count(), uniqExact(id), sum(cityHash64(id))
FROM `db`.`things`
WHERE 1 AND (shard, pos) IN ((5,9),(6,8))
GROUP BY month, shard, pos;

