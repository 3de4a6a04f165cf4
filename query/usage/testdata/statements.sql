-- bills of rows
SELECT type, toString(sum(b)), toString(sum(s)), toString(sum(u)), toString(sum(cb)), toString(sum(ca)), toString(sum(re))
FROM (
  SELECT type, sumIf(toInt128(delta), c AND t < {from:Int64}) AS b, sumIf(toInt128(delta), c) AS s,
  sumIf(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64})), c) AS u,
  countIf(c AND t < {from:Int64}) AS cb, countIf(c) AS ca, toUInt64(sum(rep)) AS re
FROM (SELECT type, provider, space, user_id, cause, id, ts, toUnixTimestamp64Milli(ts) AS t, delta,
  NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`usage.repeats`)) AS c, toUInt64(NOT c) AS rep, month, shard, pos
FROM `db`.`usage`
WHERE space != '' AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND ((month, shard) IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872),(202602,216172782113783808))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 9) AND NOT (month = 202602 AND shard = 216172782113783808 AND pos > 9) AND NOT (month = 202601 AND shard = 0 AND pos > 0 AND pos <= 8) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 0 AND pos <= 8) AND NOT (month = 202602 AND shard = 216172782113783808 AND pos > 0 AND pos <= 8) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 0 AND pos <= 8))
GROUP BY type
  UNION ALL
  SELECT type, sumIf(delta, past) AS b, sum(delta) AS s,
    sum(if(past, delta * ({to:Int64} - {from:Int64}), weighted + delta * ({to:Int64} - mend))) AS u,
    sumIf(n, past) AS cb, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month,
  (month, shard) IN ((202601,0)) AS past,
  toInt64(0) AS day, n, repeats, delta, weighted, transform(month, [202601,202602], [toInt64(1769904000000),toInt64(1772323200000)], toInt64(0)) AS mend
FROM `db`.`usage.sums`
WHERE (month, shard) IN ((202601,0),(202602,144115188075855872),(202602,216172782113783808)) AND space != '')
  GROUP BY type
  UNION ALL
  SELECT type, sumIf(delta, past) AS b, sum(delta) AS s,
    sum(if(past, delta * ({to:Int64} - {from:Int64}), weighted + delta * ({to:Int64} - mend))) AS u,
    sumIf(n, past) AS cb, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month, day < {from:Int64} AS past, mstart + (toInt64(tupleElement(d, 1)) - 1) * 86400000 AS day,
  tupleElement(d, 2) AS n, tupleElement(d, 3) AS repeats, tupleElement(d, 4) AS delta, tupleElement(d, 5) AS weighted, mend
FROM (
  SELECT type, provider, space, user_id, month, transform(month, [202601], [toInt64(1767225600000)], toInt64(0)) AS mstart, transform(month, [202601], [toInt64(1769904000000)], toInt64(0)) AS mend, days
  FROM `db`.`usage.sums`
  WHERE (month, shard) IN ((202601,72057594037927936)) AND space != '')
ARRAY JOIN arrayZip(tupleElement(days, 1), tupleElement(days, 2), tupleElement(days, 3), tupleElement(days, 4), tupleElement(days, 5)) AS d
WHERE day < {to:Int64})
  GROUP BY type)
WHERE throwIf((SELECT count() FROM `db`.`usage.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND throwIf((SELECT sum(n) + sum(repeats) FROM `db`.`usage.sums` WHERE (month, shard) IN ((202601,0),(202602,144115188075855872),(202602,216172782113783808),(202601,72057594037927936))) != 32, 'almanac: what is derived moved') = 0
GROUP BY type
HAVING sum(ca) + sum(re) > 0
ORDER BY type
FORMAT JSONCompactEachRow;

-- bills of rows, days and sums
SELECT type, toString(sum(b)), toString(sum(s)), toString(sum(u)), toString(sum(cb)), toString(sum(ca)), toString(sum(re))
FROM (
  SELECT type, sumIf(toInt128(delta), c AND t < {from:Int64}) AS b, sumIf(toInt128(delta), c) AS s,
  sumIf(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64})), c) AS u,
  countIf(c AND t < {from:Int64}) AS cb, countIf(c) AS ca, toUInt64(sum(rep)) AS re
FROM (SELECT type, provider, space, user_id, cause, id, ts, toUnixTimestamp64Milli(ts) AS t, delta,
  NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`usage.repeats`) OR (id, shard, pos) IN (SELECT id, shard, pos FROM (SELECT tupleElement(r, 3) AS month, tupleElement(r, 4) AS shard, tupleElement(r, 5) AS pos, tupleElement(r, 2) AS id,
  tupleElement(same[1], 2) AS first, tupleElement(same[1], 3) AS first_month, tupleElement(same[1], 4) AS first_shard,
  tupleElement(r, 6) != tupleElement(same[1], 6) AS other
FROM (
  SELECT arraySort(groupArray(((ts, toUInt128(id)), id, month, shard, pos, sipHash64(delta, user_id)))) AS same
  FROM `db`.`usage`
  WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND identity IN (
    SELECT identity FROM `db`.`usage`
    WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND identity IN (SELECT identity FROM `db`.`usage` WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND ((month, shard) NOT IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872),(202602,216172782113783808)) OR (month = 202602 AND shard = 216172782113783808 AND pos > 4)))
    GROUP BY identity HAVING count() > 1)
  GROUP BY `type`, `provider`, `space`, `cause` HAVING count() > 1)
ARRAY JOIN arrayFilter(x -> (tupleElement(x, 2), tupleElement(x, 4), tupleElement(x, 5)) != (tupleElement(same[1], 2), tupleElement(same[1], 4), tupleElement(same[1], 5)), same) AS r))) AS c, toUInt64(NOT c) AS rep, month, shard, pos
FROM `db`.`usage`
WHERE space != '' AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND ((month, shard) IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872),(202602,216172782113783808)) OR (shard BETWEEN 216172782113783808 AND 288230376151711743)) AND NOT (month = 202601 AND shard = 0) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 9) AND NOT (month = 202601 AND shard = 0 AND pos > 0 AND pos <= 8) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 0 AND pos <= 8) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 0 AND pos <= 8))
GROUP BY type
  UNION ALL
  SELECT type, sumIf(delta, past) AS b, sum(delta) AS s,
    sum(if(past, delta * ({to:Int64} - {from:Int64}), weighted + delta * ({to:Int64} - mend))) AS u,
    sumIf(n, past) AS cb, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month,
  (month, shard) IN ((202601,0)) AS past,
  toInt64(0) AS day, n, repeats, delta, weighted, transform(month, [202601,202602], [toInt64(1769904000000),toInt64(1772323200000)], toInt64(0)) AS mend
FROM `db`.`usage.sums`
WHERE (month, shard) IN ((202601,0),(202602,144115188075855872)) AND space != '')
  GROUP BY type
  UNION ALL
  SELECT type, sumIf(delta, past) AS b, sum(delta) AS s,
    sum(if(past, delta * ({to:Int64} - {from:Int64}), weighted + delta * ({to:Int64} - mend))) AS u,
    sumIf(n, past) AS cb, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month, day < {from:Int64} AS past, mstart + (toInt64(tupleElement(d, 1)) - 1) * 86400000 AS day,
  tupleElement(d, 2) AS n, tupleElement(d, 3) AS repeats, tupleElement(d, 4) AS delta, tupleElement(d, 5) AS weighted, mend
FROM (
  SELECT type, provider, space, user_id, month, transform(month, [202601], [toInt64(1767225600000)], toInt64(0)) AS mstart, transform(month, [202601], [toInt64(1769904000000)], toInt64(0)) AS mend, days
  FROM `db`.`usage.sums`
  WHERE (month, shard) IN ((202601,72057594037927936)) AND space != '')
ARRAY JOIN arrayZip(tupleElement(days, 1), tupleElement(days, 2), tupleElement(days, 3), tupleElement(days, 4), tupleElement(days, 5)) AS d
WHERE day < {to:Int64})
  GROUP BY type)
WHERE throwIf((SELECT count() FROM `db`.`usage.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND throwIf((SELECT sum(n) + sum(repeats) FROM `db`.`usage.sums` WHERE (month, shard) IN ((202601,0),(202602,144115188075855872),(202601,72057594037927936))) != 24, 'almanac: what is derived moved') = 0
GROUP BY type
HAVING sum(ca) + sum(re) > 0
ORDER BY type
FORMAT JSONCompactEachRow;

-- bills of one customer's space
SELECT type, provider, space, user_id, toString(sum(b)), toString(sum(s)), toString(sum(u)), toString(sum(cb)), toString(sum(ca)), toString(sum(re))
FROM (
  SELECT type, provider, space, user_id, sumIf(toInt128(delta), c AND t < {from:Int64}) AS b, sumIf(toInt128(delta), c) AS s,
  sumIf(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64})), c) AS u,
  countIf(c AND t < {from:Int64}) AS cb, countIf(c) AS ca, toUInt64(sum(rep)) AS re
FROM (SELECT type, provider, space, user_id, cause, id, ts, toUnixTimestamp64Milli(ts) AS t, delta,
  NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`usage.repeats`) OR (id, shard, pos) IN (SELECT id, shard, pos FROM (SELECT tupleElement(r, 3) AS month, tupleElement(r, 4) AS shard, tupleElement(r, 5) AS pos, tupleElement(r, 2) AS id,
  tupleElement(same[1], 2) AS first, tupleElement(same[1], 3) AS first_month, tupleElement(same[1], 4) AS first_shard,
  tupleElement(r, 6) != tupleElement(same[1], 6) AS other
FROM (
  SELECT arraySort(groupArray(((ts, toUInt128(id)), id, month, shard, pos, sipHash64(delta, user_id)))) AS same
  FROM `db`.`usage`
  WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND identity IN (
    SELECT identity FROM `db`.`usage`
    WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND identity IN (SELECT identity FROM `db`.`usage` WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND ((month, shard) NOT IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872),(202602,216172782113783808)) OR (month = 202602 AND shard = 216172782113783808 AND pos > 4)))
    GROUP BY identity HAVING count() > 1)
  GROUP BY `type`, `provider`, `space`, `cause` HAVING count() > 1)
ARRAY JOIN arrayFilter(x -> (tupleElement(x, 2), tupleElement(x, 4), tupleElement(x, 5)) != (tupleElement(same[1], 2), tupleElement(same[1], 4), tupleElement(same[1], 5)), same) AS r))) AS c, toUInt64(NOT c) AS rep, month, shard, pos
FROM `db`.`usage`
WHERE type = {type:String} AND provider = {provider:String} AND space = {space:String} AND user_id = {user_id:String} AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND ((month, shard) IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872),(202602,216172782113783808)) OR (shard BETWEEN 216172782113783808 AND 288230376151711743)) AND NOT (month = 202601 AND shard = 0) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 9) AND NOT (month = 202601 AND shard = 0 AND pos > 0 AND pos <= 8) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 0 AND pos <= 8) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 0 AND pos <= 8))
GROUP BY type, provider, space, user_id
  UNION ALL
  SELECT type, provider, space, user_id, sumIf(delta, past) AS b, sum(delta) AS s,
    sum(if(past, delta * ({to:Int64} - {from:Int64}), weighted + delta * ({to:Int64} - mend))) AS u,
    sumIf(n, past) AS cb, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month,
  (month, shard) IN ((202601,0)) AS past,
  toInt64(0) AS day, n, repeats, delta, weighted, transform(month, [202601,202602], [toInt64(1769904000000),toInt64(1772323200000)], toInt64(0)) AS mend
FROM `db`.`usage.sums`
WHERE (month, shard) IN ((202601,0),(202602,144115188075855872)) AND type = {type:String} AND provider = {provider:String} AND space = {space:String} AND user_id = {user_id:String})
  GROUP BY type, provider, space, user_id
  UNION ALL
  SELECT type, provider, space, user_id, sumIf(delta, past) AS b, sum(delta) AS s,
    sum(if(past, delta * ({to:Int64} - {from:Int64}), weighted + delta * ({to:Int64} - mend))) AS u,
    sumIf(n, past) AS cb, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month, day < {from:Int64} AS past, mstart + (toInt64(tupleElement(d, 1)) - 1) * 86400000 AS day,
  tupleElement(d, 2) AS n, tupleElement(d, 3) AS repeats, tupleElement(d, 4) AS delta, tupleElement(d, 5) AS weighted, mend
FROM (
  SELECT type, provider, space, user_id, month, transform(month, [202601], [toInt64(1767225600000)], toInt64(0)) AS mstart, transform(month, [202601], [toInt64(1769904000000)], toInt64(0)) AS mend, days
  FROM `db`.`usage.sums`
  WHERE (month, shard) IN ((202601,72057594037927936)) AND type = {type:String} AND provider = {provider:String} AND space = {space:String} AND user_id = {user_id:String})
ARRAY JOIN arrayZip(tupleElement(days, 1), tupleElement(days, 2), tupleElement(days, 3), tupleElement(days, 4), tupleElement(days, 5)) AS d
WHERE day < {to:Int64})
  GROUP BY type, provider, space, user_id)
WHERE throwIf((SELECT count() FROM `db`.`usage.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND throwIf((SELECT sum(n) + sum(repeats) FROM `db`.`usage.sums` WHERE (month, shard) IN ((202601,0),(202602,144115188075855872),(202601,72057594037927936))) != 24, 'almanac: what is derived moved') = 0
GROUP BY type, provider, space, user_id
HAVING sum(ca) + sum(re) > 0
ORDER BY type, provider, space, user_id
FORMAT JSONCompactEachRow;

-- bills by cause
SELECT type, toString(sum(b)), toString(sum(s)), toString(sum(u)), toString(sum(cb)), toString(sum(ca)), toString(sum(re))
FROM (
  SELECT type, sumIf(toInt128(delta), c AND t < {from:Int64}) AS b, sumIf(toInt128(delta), c) AS s,
  sumIf(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64})), c) AS u,
  countIf(c AND t < {from:Int64}) AS cb, countIf(c) AS ca, toUInt64(sum(rep)) AS re
FROM (SELECT type, provider, space, tupleElement(first, 5) AS user_id, cause, tupleElement(first, 3) AS id, tupleElement(first, 1) AS ts,
  toUnixTimestamp64Milli(ts) AS t, tupleElement(first, 4) AS delta, NOT tupleElement(first, 6) AS c, n - toUInt8(c) AS rep
FROM (
  SELECT type, provider, space, cause,
    min((ts, toUInt128(id), id, delta, user_id, (id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`usage.repeats` WHERE (first_month, first_shard) IN ((202601,0))))) AS first, count() AS n
  FROM `db`.`usage`
  WHERE space != '' AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND 1 AND NOT (month = 202601 AND shard = 0) AND NOT (month = 202601 AND shard = 0 AND pos > 0 AND pos <= 8)
  GROUP BY type, provider, space, cause))
GROUP BY type
  UNION ALL
  SELECT type, sumIf(delta, past) AS b, sum(delta) AS s,
    sum(if(past, delta * ({to:Int64} - {from:Int64}), weighted + delta * ({to:Int64} - mend))) AS u,
    sumIf(n, past) AS cb, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month,
  (month, shard) IN ((202601,0)) AS past,
  toInt64(0) AS day, n, repeats, delta, weighted, transform(month, [202601], [toInt64(1769904000000)], toInt64(0)) AS mend
FROM `db`.`usage.sums`
WHERE (month, shard) IN ((202601,0)) AND space != '')
  GROUP BY type)
WHERE throwIf((SELECT sum(n) + sum(repeats) FROM `db`.`usage.sums` WHERE (month, shard) IN ((202601,0))) != 8, 'almanac: what is derived moved') = 0
GROUP BY type
HAVING sum(ca) + sum(re) > 0
ORDER BY type
FORMAT JSONCompactEachRow;

-- the bill of one space
SELECT type, toString(b), toString(s), toString(u), toString(cb), toString(ca), toString(re)
FROM (
  SELECT type, sumIf(toInt128(delta), t < {from:Int64}) AS b, sum(toInt128(delta)) AS s,
  sum(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64}))) AS u,
  countIf(t < {from:Int64}) AS cb, count() AS ca, toUInt64(sum(rep)) AS re
FROM (SELECT type, provider, space,
  min((ts, toUInt128(id), m.delta)) AS first,
  toUnixTimestamp64Milli(tupleElement(first, 1)) AS t, tupleElement(first, 3) AS delta, true AS c, count() - 1 AS rep
FROM `db`.`usage` AS m
PREWHERE space = {space:String}
WHERE space = {space:String} AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND 1
GROUP BY type, provider, space, cause)
GROUP BY type)
WHERE 1 AND ca + re > 0
ORDER BY type
FORMAT JSONCompactEachRow;

-- the bills of one space's customers
SELECT type, user_id, toString(b), toString(s), toString(u), toString(cb), toString(ca), toString(re)
FROM (
  SELECT type, user_id, sumIf(toInt128(delta), t < {from:Int64}) AS b, sum(toInt128(delta)) AS s,
  sum(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64}))) AS u,
  countIf(t < {from:Int64}) AS cb, count() AS ca, toUInt64(sum(rep)) AS re
FROM (SELECT type, provider, space, tupleElement(first, 4) AS user_id,
  min((ts, toUInt128(id), m.delta, m.user_id)) AS first,
  toUnixTimestamp64Milli(tupleElement(first, 1)) AS t, tupleElement(first, 3) AS delta, true AS c, count() - 1 AS rep
FROM `db`.`usage` AS m
PREWHERE space = {space:String}
WHERE space = {space:String} AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND 1
GROUP BY type, provider, space, cause)
GROUP BY type, user_id)
WHERE 1 AND ca + re > 0
ORDER BY type, user_id
FORMAT JSONCompactEachRow;

-- bills by cause, of a customer
SELECT type, toString(sum(b)), toString(sum(s)), toString(sum(u)), toString(sum(cb)), toString(sum(ca)), toString(sum(re))
FROM (
  SELECT type, sumIf(toInt128(delta), c AND t < {from:Int64}) AS b, sumIf(toInt128(delta), c) AS s,
  sumIf(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64})), c) AS u,
  countIf(c AND t < {from:Int64}) AS cb, countIf(c) AS ca, toUInt64(sum(rep)) AS re
FROM (SELECT * FROM (SELECT type, provider, space, tupleElement(first, 5) AS user_id, cause, tupleElement(first, 3) AS id, tupleElement(first, 1) AS ts,
  toUnixTimestamp64Milli(ts) AS t, tupleElement(first, 4) AS delta, NOT tupleElement(first, 6) AS c, n - toUInt8(c) AS rep
FROM (
  SELECT type, provider, space, cause,
    min((ts, toUInt128(id), id, delta, user_id, (id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`usage.repeats` WHERE (first_month, first_shard) IN ((202601,0))))) AS first, count() AS n
  FROM `db`.`usage`
  WHERE space != '' AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND 1 AND NOT (month = 202601 AND shard = 0) AND NOT (month = 202601 AND shard = 0 AND pos > 0 AND pos <= 8)
  GROUP BY type, provider, space, cause)) WHERE user_id = {user_id:String})
GROUP BY type
  UNION ALL
  SELECT type, sumIf(delta, past) AS b, sum(delta) AS s,
    sum(if(past, delta * ({to:Int64} - {from:Int64}), weighted + delta * ({to:Int64} - mend))) AS u,
    sumIf(n, past) AS cb, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month,
  (month, shard) IN ((202601,0)) AS past,
  toInt64(0) AS day, n, repeats, delta, weighted, transform(month, [202601], [toInt64(1769904000000)], toInt64(0)) AS mend
FROM `db`.`usage.sums`
WHERE (month, shard) IN ((202601,0)) AND space != '' AND user_id = {user_id:String})
  GROUP BY type)
WHERE throwIf((SELECT sum(n) + sum(repeats) FROM `db`.`usage.sums` WHERE (month, shard) IN ((202601,0))) != 8, 'almanac: what is derived moved') = 0
GROUP BY type
HAVING sum(ca) + sum(re) > 0
ORDER BY type
FORMAT JSONCompactEachRow;

-- bills by cause, with once_within
SELECT type, toString(sum(b)), toString(sum(s)), toString(sum(u)), toString(sum(cb)), toString(sum(ca)), toString(sum(re))
FROM (
  SELECT type, sumIf(toInt128(delta), c AND t < {from:Int64}) AS b, sumIf(toInt128(delta), c) AS s,
  sumIf(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64})), c) AS u,
  countIf(c AND t < {from:Int64}) AS cb, countIf(c) AS ca, toUInt64(sum(rep)) AS re
FROM (SELECT type, provider, space, tupleElement(one, 5) AS user_id, cause, tupleElement(one, 3) AS id, tupleElement(one, 1) AS ts,
  toUnixTimestamp64Milli(ts) AS t, tupleElement(one, 4) AS delta, true AS c, if(one = counting[1], length(same) - length(counting), 0) AS rep,
  tupleElement(one, 6) AS month, tupleElement(one, 7) AS shard, tupleElement(one, 8) AS pos
FROM (
  SELECT type, provider, space, cause,
    arraySort(groupArray((ts, toUInt128(id), id, delta, user_id, month, shard, pos, (id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`usage.repeats` WHERE (first_month, first_shard) IN ((202601,0)))))) AS same,
    arrayFilter((x, i) -> NOT tupleElement(x, 9) AND (i = 1 OR toUnixTimestamp64Nano(tupleElement(x, 1)) - toUnixTimestamp64Nano(tupleElement(same[i - 1], 1)) > 60000000000), same, arrayEnumerate(same)) AS counting
  FROM `db`.`usage`
  WHERE space != '' AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND 1 AND NOT (month = 202601 AND shard = 0) AND NOT (month = 202601 AND shard = 0 AND pos > 0 AND pos <= 8)
  GROUP BY type, provider, space, cause)
ARRAY JOIN counting AS one)
GROUP BY type
  UNION ALL
  SELECT type, sumIf(delta, past) AS b, sum(delta) AS s,
    sum(if(past, delta * ({to:Int64} - {from:Int64}), weighted + delta * ({to:Int64} - mend))) AS u,
    sumIf(n, past) AS cb, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month,
  (month, shard) IN ((202601,0)) AS past,
  toInt64(0) AS day, n, repeats, delta, weighted, transform(month, [202601], [toInt64(1769904000000)], toInt64(0)) AS mend
FROM `db`.`usage.sums`
WHERE (month, shard) IN ((202601,0)) AND space != '')
  GROUP BY type)
WHERE throwIf((SELECT sum(n) + sum(repeats) FROM `db`.`usage.sums` WHERE (month, shard) IN ((202601,0))) != 8, 'almanac: what is derived moved') = 0
GROUP BY type
HAVING sum(ca) + sum(re) > 0
ORDER BY type
FORMAT JSONCompactEachRow;

-- bills by day
SELECT type, toString(k), toString(sum(d)), toString(sum(w)), toString(sum(ca)), toString(sum(re))
FROM (
  SELECT type,
    if(t < {from:Int64}, toInt64(-1), intDiv(t, 86400000)) AS k,
    sumIf(toInt128(delta), c) AS d, sumIf(toInt128(delta) * (least({to:Int64}, (k + 1) * 86400000) - t), c) AS w, countIf(c) AS ca, toUInt64(sum(rep)) AS re
  FROM (SELECT type, provider, space, user_id, cause, id, ts, toUnixTimestamp64Milli(ts) AS t, delta,
  NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`usage.repeats`) OR (id, shard, pos) IN (SELECT id, shard, pos FROM (SELECT tupleElement(r, 3) AS month, tupleElement(r, 4) AS shard, tupleElement(r, 5) AS pos, tupleElement(r, 2) AS id,
  tupleElement(same[1], 2) AS first, tupleElement(same[1], 3) AS first_month, tupleElement(same[1], 4) AS first_shard,
  tupleElement(r, 6) != tupleElement(same[1], 6) AS other
FROM (
  SELECT arraySort(groupArray(((ts, toUInt128(id)), id, month, shard, pos, sipHash64(delta, user_id)))) AS same
  FROM `db`.`usage`
  WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND identity IN (
    SELECT identity FROM `db`.`usage`
    WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND identity IN (SELECT identity FROM `db`.`usage` WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND ((month, shard) NOT IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872),(202602,216172782113783808)) OR (month = 202602 AND shard = 216172782113783808 AND pos > 4)))
    GROUP BY identity HAVING count() > 1)
  GROUP BY `type`, `provider`, `space`, `cause` HAVING count() > 1)
ARRAY JOIN arrayFilter(x -> (tupleElement(x, 2), tupleElement(x, 4), tupleElement(x, 5)) != (tupleElement(same[1], 2), tupleElement(same[1], 4), tupleElement(same[1], 5)), same) AS r))) AS c, toUInt64(NOT c) AS rep, month, shard, pos
FROM `db`.`usage`
WHERE space != '' AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND ((month, shard) IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872),(202602,216172782113783808)) OR (shard BETWEEN 216172782113783808 AND 288230376151711743)) AND NOT (month = 202601 AND shard = 0) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 9) AND NOT (month = 202601 AND shard = 0 AND pos > 0 AND pos <= 8) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 0 AND pos <= 8) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 0 AND pos <= 8))
  GROUP BY type, k
  UNION ALL
  SELECT type,
    if(past, toInt64(-1), intDiv(day, 86400000)) AS k,
    sum(delta) AS d, sum(weighted + delta * (least({to:Int64}, (k + 1) * 86400000) - mend)) AS w, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month, day < {from:Int64} AS past, mstart + (toInt64(tupleElement(d, 1)) - 1) * 86400000 AS day,
  tupleElement(d, 2) AS n, tupleElement(d, 3) AS repeats, tupleElement(d, 4) AS delta, tupleElement(d, 5) AS weighted, mend
FROM (
  SELECT type, provider, space, user_id, month, transform(month, [202601,202602], [toInt64(1767225600000),toInt64(1769904000000)], toInt64(0)) AS mstart, transform(month, [202601,202602], [toInt64(1769904000000),toInt64(1772323200000)], toInt64(0)) AS mend, days
  FROM `db`.`usage.sums`
  WHERE (month, shard) IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872)) AND space != '')
ARRAY JOIN arrayZip(tupleElement(days, 1), tupleElement(days, 2), tupleElement(days, 3), tupleElement(days, 4), tupleElement(days, 5)) AS d
WHERE day < {to:Int64})
  GROUP BY type, k)
WHERE throwIf((SELECT count() FROM `db`.`usage.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND throwIf((SELECT sum(n) + sum(repeats) FROM `db`.`usage.sums` WHERE (month, shard) IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872))) != 24, 'almanac: what is derived moved') = 0
GROUP BY type, k
ORDER BY type, k
FORMAT JSONCompactEachRow;

-- bills by month
SELECT type, toString(k), toString(sum(d)), toString(sum(w)), toString(sum(ca)), toString(sum(re))
FROM (
  SELECT type,
    if(t < {from:Int64}, toInt64(-1), toInt64(toYYYYMM(fromUnixTimestamp64Milli(t, 'UTC')))) AS k,
    sumIf(toInt128(delta), c) AS d, sumIf(toInt128(delta) * (transform(k, [toInt64(202601),toInt64(202602)], [toInt64(1769904000000),toInt64(1770076800000)], toInt64(0)) - t), c) AS w, countIf(c) AS ca, toUInt64(sum(rep)) AS re
  FROM (SELECT type, provider, space, user_id, cause, id, ts, toUnixTimestamp64Milli(ts) AS t, delta,
  NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`usage.repeats`) OR (id, shard, pos) IN (SELECT id, shard, pos FROM (SELECT tupleElement(r, 3) AS month, tupleElement(r, 4) AS shard, tupleElement(r, 5) AS pos, tupleElement(r, 2) AS id,
  tupleElement(same[1], 2) AS first, tupleElement(same[1], 3) AS first_month, tupleElement(same[1], 4) AS first_shard,
  tupleElement(r, 6) != tupleElement(same[1], 6) AS other
FROM (
  SELECT arraySort(groupArray(((ts, toUInt128(id)), id, month, shard, pos, sipHash64(delta, user_id)))) AS same
  FROM `db`.`usage`
  WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND identity IN (
    SELECT identity FROM `db`.`usage`
    WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND identity IN (SELECT identity FROM `db`.`usage` WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND ((month, shard) NOT IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872),(202602,216172782113783808)) OR (month = 202602 AND shard = 216172782113783808 AND pos > 4)))
    GROUP BY identity HAVING count() > 1)
  GROUP BY `type`, `provider`, `space`, `cause` HAVING count() > 1)
ARRAY JOIN arrayFilter(x -> (tupleElement(x, 2), tupleElement(x, 4), tupleElement(x, 5)) != (tupleElement(same[1], 2), tupleElement(same[1], 4), tupleElement(same[1], 5)), same) AS r))) AS c, toUInt64(NOT c) AS rep, month, shard, pos
FROM `db`.`usage`
WHERE space != '' AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND ((month, shard) IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872),(202602,216172782113783808)) OR (shard BETWEEN 216172782113783808 AND 288230376151711743)) AND NOT (month = 202601 AND shard = 0) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 9) AND NOT (month = 202601 AND shard = 0 AND pos > 0 AND pos <= 8) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 0 AND pos <= 8) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 0 AND pos <= 8))
  GROUP BY type, k
  UNION ALL
  SELECT type,
    if(past, toInt64(-1), toInt64(month)) AS k,
    sum(delta) AS d, sum(weighted + delta * (transform(k, [toInt64(202601),toInt64(202602)], [toInt64(1769904000000),toInt64(1770076800000)], toInt64(0)) - mend)) AS w, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month,
  (month, shard) IN ((202601,0)) AS past,
  toInt64(0) AS day, n, repeats, delta, weighted, transform(month, [202601,202602], [toInt64(1769904000000),toInt64(1772323200000)], toInt64(0)) AS mend
FROM `db`.`usage.sums`
WHERE (month, shard) IN ((202601,0),(202602,144115188075855872)) AND space != '')
  GROUP BY type, k
  UNION ALL
  SELECT type,
    if(past, toInt64(-1), toInt64(month)) AS k,
    sum(delta) AS d, sum(weighted + delta * (transform(k, [toInt64(202601),toInt64(202602)], [toInt64(1769904000000),toInt64(1770076800000)], toInt64(0)) - mend)) AS w, sum(n) AS ca, sum(repeats) AS re
  FROM (SELECT type, provider, space, user_id, month, day < {from:Int64} AS past, mstart + (toInt64(tupleElement(d, 1)) - 1) * 86400000 AS day,
  tupleElement(d, 2) AS n, tupleElement(d, 3) AS repeats, tupleElement(d, 4) AS delta, tupleElement(d, 5) AS weighted, mend
FROM (
  SELECT type, provider, space, user_id, month, transform(month, [202601], [toInt64(1767225600000)], toInt64(0)) AS mstart, transform(month, [202601], [toInt64(1769904000000)], toInt64(0)) AS mend, days
  FROM `db`.`usage.sums`
  WHERE (month, shard) IN ((202601,72057594037927936)) AND space != '')
ARRAY JOIN arrayZip(tupleElement(days, 1), tupleElement(days, 2), tupleElement(days, 3), tupleElement(days, 4), tupleElement(days, 5)) AS d
WHERE day < {to:Int64})
  GROUP BY type, k)
WHERE throwIf((SELECT count() FROM `db`.`usage.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND throwIf((SELECT sum(n) + sum(repeats) FROM `db`.`usage.sums` WHERE (month, shard) IN ((202601,0),(202602,144115188075855872),(202601,72057594037927936))) != 24, 'almanac: what is derived moved') = 0
GROUP BY type, k
ORDER BY type, k
FORMAT JSONCompactEachRow;

-- a page of diffs
SELECT toString(toUnixTimestamp64Nano(ts)), toString(id), type, provider, space, user_id, cause, toString(delta)
FROM (SELECT type, provider, space, user_id, cause, id, ts, toUnixTimestamp64Milli(ts) AS t, delta,
  NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`usage.repeats`)) AS c, toUInt64(NOT c) AS rep, month, shard, pos
FROM `db`.`usage`
WHERE space != '' AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND ((month, shard) IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872),(202602,216172782113783808))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 9) AND NOT (month = 202602 AND shard = 216172782113783808 AND pos > 9) AND NOT (month = 202601 AND shard = 0 AND pos > 0 AND pos <= 8) AND NOT (month = 202602 AND shard = 144115188075855872 AND pos > 0 AND pos <= 8) AND NOT (month = 202602 AND shard = 216172782113783808 AND pos > 0 AND pos <= 8) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 0 AND pos <= 8))
WHERE c AND t >= {from:Int64} AND (ts, toUInt128(id)) > (fromUnixTimestamp64Nano({ns:Int64}, 'UTC'), toUInt128({id:UUID})) AND throwIf((SELECT count() FROM `db`.`usage.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND throwIf((SELECT sum(n) + sum(repeats) FROM `db`.`usage.sums` WHERE (month, shard) IN ((202601,0),(202602,144115188075855872),(202602,216172782113783808),(202601,72057594037927936))) != 32, 'almanac: what is derived moved') = 0
ORDER BY ts, toUInt128(id)
LIMIT 3
FORMAT JSONCompactEachRow;

-- diffs above positions, by cause
SELECT toString(toUnixTimestamp64Nano(ts)), toString(id), type, provider, space, user_id, cause, toString(delta)
FROM (SELECT type, provider, space, tupleElement(first, 5) AS user_id, cause, tupleElement(first, 3) AS id, tupleElement(first, 1) AS ts,
  toUnixTimestamp64Milli(ts) AS t, tupleElement(first, 4) AS delta, NOT tupleElement(first, 6) AS c, n - toUInt8(c) AS rep, tupleElement(first, 7) AS month, tupleElement(first, 8) AS shard, tupleElement(first, 9) AS pos
FROM (
  SELECT type, provider, space, cause,
    min((ts, toUInt128(id), id, delta, user_id, (id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`usage.repeats` WHERE (first_month, first_shard) IN ((202601,0))), month, shard, pos)) AS first, count() AS n
  FROM `db`.`usage`
  WHERE space != '' AND ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC') AND 1 AND NOT (month = 202601 AND shard = 0) AND NOT (month = 202601 AND shard = 0 AND pos > 0 AND pos <= 8)
  GROUP BY type, provider, space, cause))
WHERE c AND ((month, shard) NOT IN ((202601,1)) OR (month = 202601 AND shard = 1 AND pos > 5)) AND throwIf((SELECT sum(n) + sum(repeats) FROM `db`.`usage.sums` WHERE (month, shard) IN ((202601,0))) != 8, 'almanac: what is derived moved') = 0
ORDER BY ts, toUInt128(id)
LIMIT 3
FORMAT JSONCompactEachRow;

-- contradicting
SELECT toString(id), toString(shard), toString(pos), toString(first), toString(first_shard)
FROM (SELECT DISTINCT id, shard, pos, first, first_shard
FROM (SELECT id, shard, pos, first, first_shard FROM `db`.`usage.repeats` WHERE other
  UNION ALL
  SELECT id, shard, pos, first, first_shard FROM (SELECT tupleElement(r, 3) AS month, tupleElement(r, 4) AS shard, tupleElement(r, 5) AS pos, tupleElement(r, 2) AS id,
  tupleElement(same[1], 2) AS first, tupleElement(same[1], 3) AS first_month, tupleElement(same[1], 4) AS first_shard,
  tupleElement(r, 6) != tupleElement(same[1], 6) AS other
FROM (
  SELECT arraySort(groupArray(((ts, toUInt128(id)), id, month, shard, pos, sipHash64(delta, user_id)))) AS same
  FROM `db`.`usage`
  WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND identity IN (
    SELECT identity FROM `db`.`usage`
    WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND identity IN (SELECT identity FROM `db`.`usage` WHERE (shard BETWEEN 216172782113783808 AND 288230376151711743) AND ((month, shard) NOT IN ((202601,0),(202601,72057594037927936),(202602,144115188075855872),(202602,216172782113783808)) OR (month = 202602 AND shard = 216172782113783808 AND pos > 4)))
    GROUP BY identity HAVING count() > 1)
  GROUP BY `type`, `provider`, `space`, `cause` HAVING count() > 1)
ARRAY JOIN arrayFilter(x -> (tupleElement(x, 2), tupleElement(x, 4), tupleElement(x, 5)) != (tupleElement(same[1], 2), tupleElement(same[1], 4), tupleElement(same[1], 5)), same) AS r) WHERE other)
ORDER BY id, first, shard, pos
LIMIT 10000)
WHERE throwIf((SELECT count() FROM `db`.`usage.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0
FORMAT JSONCompactEachRow;

-- contradicting without marks
SELECT toString(id), toString(shard), toString(pos), toString(first), toString(first_shard)
FROM (SELECT toUUID('00000000-0000-0000-0000-000000000000') AS id, toUInt64(0) AS shard, toUInt64(0) AS pos, toUUID('00000000-0000-0000-0000-000000000000') AS first, toUInt64(0) AS first_shard
WHERE 0)
WHERE throwIf((SELECT count() FROM `db`.`usage.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 0, 'almanac: what is derived moved') = 0
FORMAT JSONCompactEachRow;

-- contradictory
SELECT toString(toUnixTimestamp64Nano(ts)), toString(id), type, provider, space, user_id, cause, toString(delta), toString(shard), toString(pos)
FROM `db`.`usage`
WHERE space != '' AND 1 AND id IN (SELECT arrayJoin([id, first]) FROM (SELECT DISTINCT id, shard, pos, first, first_shard
FROM (SELECT id, shard, pos, first, first_shard FROM `db`.`usage.repeats` WHERE other)
ORDER BY id, first, shard, pos
LIMIT 10000))
FORMAT JSONCompactEachRow;

