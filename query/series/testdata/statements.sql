-- align none reduce none by [], distributions false
SELECT series, t, toUInt8(dist), toFloat64(val), toUInt64(n), toFloat64(s), toFloat64(lo), toFloat64(hi), toFloat64(q)
FROM (SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toUInt64(count), 1) AS n, if(dist, sum, value) AS s, if(dist, min, value) AS lo, if(dist, max, value) AS hi, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu
FROM `db`.`cpu`
WHERE type = {metric:String} AND ts > fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND points IN ('', 'gauge', 'delta', 'cumulative') AND ((month, shard) IN ((202601,0),(202601,72057594037927936))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 9) AND throwIf((SELECT count() FROM `db`.`cpu.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND 1 AND NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`cpu.repeats`)))
ORDER BY series, t
LIMIT 11
FORMAT RowBinary;

-- align summary reduce none by [], distributions false
SELECT series, toInt64(w), toUInt8(1), toFloat64(0), toUInt64(an), toFloat64(asum), toFloat64(alo), toFloat64(ahi), toFloat64(aq)
FROM (SELECT series, w, sum(n) AS an, sum(s) AS asum, minIf(lo, n > 0) AS alo, maxIf(hi, n > 0) AS ahi, if(max(dist), greatest(sum(q) + sum(n * mu * mu) - sum(s) * sum(s) / sum(n), 0.), varPopStable(val) * count()) AS aq
FROM (SELECT *, intDiv(t + 60000000000 - 1, 60000000000) * 60000000000 AS w FROM (SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toUInt64(count), 1) AS n, if(dist, sum, value) AS s, if(dist, min, value) AS lo, if(dist, max, value) AS hi, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu
FROM `db`.`cpu`
WHERE type = {metric:String} AND ts > fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND points IN ('', 'gauge', 'delta', 'cumulative') AND ((month, shard) IN ((202601,0),(202601,72057594037927936))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 9) AND throwIf((SELECT count() FROM `db`.`cpu.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND 1 AND NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`cpu.repeats`))))
GROUP BY series, w
HAVING an > 0 AND throwIf(max(dist AND kind = 'cumulative'), 'almanac: points are distributions') = 0)
ORDER BY series, w
LIMIT 11
FORMAT RowBinary;

-- align mean reduce none by [], distributions true
SELECT series, toInt64(w), toFloat64(v)
FROM (SELECT series, w, sum(s) / sum(n) AS v
FROM (SELECT *, intDiv(t + 60000000000 - 1, 60000000000) * 60000000000 AS w FROM (SELECT series, t, dist, kind, val, gn AS n, gs AS s, gq AS q, gmu AS mu, glo AS lo, ghi AS hi, bk, gc AS bc
FROM (
  SELECT series, t, dist, kind, val, cum, fresh, if(whole, n, greatest(n - n0, 0.)) AS gn, if(whole, s, s - s0) AS gs, if(gn = 0, 0., gs / gn) AS gmu,
    if(whole, q, greatest(q - q0 - if(n = 0, 0., n0 * gn / n * (gmu - mu0) * (gmu - mu0)), 0.)) AS gq, bk,
    multiIf(whole, bc,
      arraySum(arrayMap((b, c) -> if(has(bk, b), c, 0.), bk0, bc0)) = arraySum(bc0), arrayMap((b, c) -> greatest(c - if(has(bk0, b), arrayElement(bc0, indexOf(bk0, b)), 0.), 0.), bk, bc),
      arrayMap(c -> if(n = 0, 0., c * gn / n), bc)) AS gc,
    arrayFirstIndex(c -> c > 0, gc) AS g1, arrayLastIndex(c -> c > 0, gc) AS g2,
    if(whole OR g1 <= 1, lo, greatest(lo, bk[g1 - 1])) AS glo, if(whole OR g2 = 0, hi, least(hi, bk[g2])) AS ghi
  FROM (
    SELECT *, dist AND kind = 'cumulative' AS cum, t0 < 0 AS fresh, NOT cum OR n < n0 OR began != began0 AND began > 0 AND began0 > 0 AS whole
    FROM (
      SELECT *, lagInFrame(t, 1, toInt64(-1)) OVER o AS t0, lagInFrame(n) OVER o AS n0, lagInFrame(s) OVER o AS s0, lagInFrame(q) OVER o AS q0, lagInFrame(mu) OVER o AS mu0,
        lagInFrame(began) OVER o AS began0, lagInFrame(bk) OVER o AS bk0, lagInFrame(bc) OVER o AS bc0
      FROM (SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toFloat64(count), 1.) AS n, if(dist, sum, value) AS s, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu,
  if(dist AND buckets != '', arrayPushBack(JSONExtract(buckets, 'bounds', 'Array(Float64)'), inf), [if(dist, max, value)]) AS bk,
  if(dist AND buckets != '', arrayMap(c -> toFloat64(c), JSONExtract(buckets, 'counts', 'Array(UInt64)')), [n]) AS bc,
  (dist AND buckets != '' AND min = 0 AND max = 0 AND sum != 0) AS open, arrayFirstIndex(c -> c > 0, bc) AS b1, arrayLastIndex(c -> c > 0, bc) AS b2,
  multiIf(NOT dist, value, NOT open, min, b1 > 1, bk[b1 - 1], least(bk[1], 0.)) AS lo,
  multiIf(NOT dist, value, NOT open, max, bk[b2] = inf, bk[greatest(b2 - 1, 1)], bk[b2]) AS hi
FROM `db`.`cpu`
WHERE type = {metric:String} AND ts > fromUnixTimestamp64Nano({before:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND points IN ('', 'gauge', 'delta', 'cumulative') AND ((month, shard) IN ((202601,0),(202601,72057594037927936))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 9) AND throwIf((SELECT count() FROM `db`.`cpu.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND 1 AND NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`cpu.repeats`)))
      WINDOW o AS (PARTITION BY series, dist ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW))))
WHERE t > {from:Int64} AND NOT (cum AND fresh)))
GROUP BY series, w
HAVING sum(n) > 0)
ORDER BY series, w
LIMIT 11
FORMAT RowBinary;

-- align p95 reduce none by [], distributions false
SELECT series, toInt64(w), toFloat64(v)
FROM (SELECT series, w, quantileExactInclusive(0.95)(val) + throwIf(max(dist), 'almanac: points are distributions') AS v
FROM (SELECT *, intDiv(t + 60000000000 - 1, 60000000000) * 60000000000 AS w FROM (SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toUInt64(count), 1) AS n, if(dist, sum, value) AS s, if(dist, min, value) AS lo, if(dist, max, value) AS hi, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu
FROM `db`.`cpu`
WHERE type = {metric:String} AND ts > fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND points IN ('', 'gauge', 'delta', 'cumulative') AND ((month, shard) IN ((202601,0),(202601,72057594037927936))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 9) AND throwIf((SELECT count() FROM `db`.`cpu.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND 1 AND NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`cpu.repeats`))))
GROUP BY series, w
HAVING sum(n) > 0 AND throwIf(max(dist AND kind = 'cumulative'), 'almanac: points are distributions') = 0)
ORDER BY series, w
LIMIT 11
FORMAT RowBinary;

-- align rate reduce none by [], distributions false
SELECT series, toInt64(w), toFloat64(v)
FROM (SELECT series, w, assumeNotNull(sum(grown) / 60) + throwIf(max(dist), 'almanac: points are distributions') AS v
FROM (
  SELECT series, dist, intDiv(t + 60000000000 - 1, 60000000000) * 60000000000 AS w,
    multiIf(kind = 'delta', val, t0 < 0, NULL, val < val0 OR began != began0 AND began > 0 AND began0 > 0, val, val - val0) AS grown
  FROM (
    SELECT series, t, val, began, kind, dist, lagInFrame(t, 1, toInt64(-1)) OVER o AS t0, lagInFrame(val) OVER o AS val0, lagInFrame(began) OVER o AS began0
    FROM (SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toUInt64(count), 1) AS n, if(dist, sum, value) AS s, if(dist, min, value) AS lo, if(dist, max, value) AS hi, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu
FROM `db`.`cpu`
WHERE type = {metric:String} AND ts > fromUnixTimestamp64Nano({before:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND points IN ('', 'gauge', 'delta', 'cumulative') AND ((month, shard) IN ((202601,0),(202601,72057594037927936))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 9) AND throwIf((SELECT count() FROM `db`.`cpu.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND 1 AND NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`cpu.repeats`)))
    WINDOW o AS (PARTITION BY series ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW))
  WHERE t > {from:Int64})
WHERE grown IS NOT NULL
GROUP BY series, w)
ORDER BY series, w
LIMIT 11
FORMAT RowBinary;

-- align rate reduce none by [], distributions true
SELECT series, toInt64(w), toFloat64(v)
FROM (SELECT series, w, sum(n) / 60 AS v
FROM (SELECT series, n, intDiv(t + 60000000000 - 1, 60000000000) * 60000000000 AS w FROM (SELECT series, t, dist, kind, val, gn AS n, gs AS s, gq AS q, gmu AS mu, glo AS lo, ghi AS hi, bk, gc AS bc
FROM (
  SELECT series, t, dist, kind, val, cum, fresh, if(whole, n, greatest(n - n0, 0.)) AS gn, if(whole, s, s - s0) AS gs, if(gn = 0, 0., gs / gn) AS gmu,
    if(whole, q, greatest(q - q0 - if(n = 0, 0., n0 * gn / n * (gmu - mu0) * (gmu - mu0)), 0.)) AS gq, bk,
    multiIf(whole, bc,
      arraySum(arrayMap((b, c) -> if(has(bk, b), c, 0.), bk0, bc0)) = arraySum(bc0), arrayMap((b, c) -> greatest(c - if(has(bk0, b), arrayElement(bc0, indexOf(bk0, b)), 0.), 0.), bk, bc),
      arrayMap(c -> if(n = 0, 0., c * gn / n), bc)) AS gc,
    arrayFirstIndex(c -> c > 0, gc) AS g1, arrayLastIndex(c -> c > 0, gc) AS g2,
    if(whole OR g1 <= 1, lo, greatest(lo, bk[g1 - 1])) AS glo, if(whole OR g2 = 0, hi, least(hi, bk[g2])) AS ghi
  FROM (
    SELECT *, dist AND kind != 'delta' AS cum, t0 < 0 AS fresh, NOT cum OR n < n0 OR began != began0 AND began > 0 AND began0 > 0 AS whole
    FROM (
      SELECT *, lagInFrame(t, 1, toInt64(-1)) OVER o AS t0, lagInFrame(n) OVER o AS n0, lagInFrame(s) OVER o AS s0, lagInFrame(q) OVER o AS q0, lagInFrame(mu) OVER o AS mu0,
        lagInFrame(began) OVER o AS began0, lagInFrame(bk) OVER o AS bk0, lagInFrame(bc) OVER o AS bc0
      FROM (SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toFloat64(count), 1.) AS n, if(dist, sum, value) AS s, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu,
  if(dist AND buckets != '', arrayPushBack(JSONExtract(buckets, 'bounds', 'Array(Float64)'), inf), [if(dist, max, value)]) AS bk,
  if(dist AND buckets != '', arrayMap(c -> toFloat64(c), JSONExtract(buckets, 'counts', 'Array(UInt64)')), [n]) AS bc,
  (dist AND buckets != '' AND min = 0 AND max = 0 AND sum != 0) AS open, arrayFirstIndex(c -> c > 0, bc) AS b1, arrayLastIndex(c -> c > 0, bc) AS b2,
  multiIf(NOT dist, value, NOT open, min, b1 > 1, bk[b1 - 1], least(bk[1], 0.)) AS lo,
  multiIf(NOT dist, value, NOT open, max, bk[b2] = inf, bk[greatest(b2 - 1, 1)], bk[b2]) AS hi
FROM `db`.`cpu`
WHERE type = {metric:String} AND ts > fromUnixTimestamp64Nano({before:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND points IN ('', 'gauge', 'delta', 'cumulative') AND ((month, shard) IN ((202601,0),(202601,72057594037927936))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 9) AND throwIf((SELECT count() FROM `db`.`cpu.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND 1 AND NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`cpu.repeats`)))
      WINDOW o AS (PARTITION BY series, dist ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW))))
WHERE t > {from:Int64} AND NOT (cum AND fresh)) WHERE dist)
GROUP BY series, w)
ORDER BY series, w
LIMIT 11
FORMAT RowBinary;

-- align sum reduce max by [host service], distributions false
SELECT toJSONString([toString(g0), toString(g1), toString(g2)]), toInt64(w), toFloat64(max(v))
FROM (SELECT g0, g1, g2, a.*
FROM (SELECT series, w, sum(s) AS v
FROM (SELECT *, intDiv(t + 60000000000 - 1, 60000000000) * 60000000000 AS w FROM (SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toUInt64(count), 1) AS n, if(dist, sum, value) AS s, if(dist, min, value) AS lo, if(dist, max, value) AS hi, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu
FROM `db`.`cpu`
WHERE type = {metric:String} AND ts > fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND points IN ('', 'gauge', 'delta', 'cumulative') AND ((month, shard) IN ((202601,0),(202601,72057594037927936))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 9) AND throwIf((SELECT count() FROM `db`.`cpu.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND 1 AND NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`cpu.repeats`))))
GROUP BY series, w
HAVING sum(n) > 0 AND throwIf(max(dist AND kind = 'cumulative'), 'almanac: points are distributions') = 0) AS a
INNER JOIN (SELECT series, unit AS g0, attributes[{by3:String}] AS g1, `service` AS g2 FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type = {metric:String} AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 9)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series) WHERE 1) AS l ON a.series = l.series)
GROUP BY g0, g1, g2, w
ORDER BY g0, g1, g2, w
LIMIT 11
FORMAT RowBinary;

-- align summary reduce stddev by [host], distributions false
SELECT toJSONString([toString(g0), toString(g1)]), toInt64(w), toFloat64(sqrt(sum(aq + an * (asum / an - gm) * (asum / an - gm)) / sum(an)))
FROM (SELECT *, sum(asum) OVER (PARTITION BY g0, g1, w) / sum(an) OVER (PARTITION BY g0, g1, w) AS gm FROM (SELECT g0, g1, a.*
FROM (SELECT series, w, sum(n) AS an, sum(s) AS asum, minIf(lo, n > 0) AS alo, maxIf(hi, n > 0) AS ahi, if(max(dist), greatest(sum(q) + sum(n * mu * mu) - sum(s) * sum(s) / sum(n), 0.), varPopStable(val) * count()) AS aq
FROM (SELECT *, intDiv(t + 60000000000 - 1, 60000000000) * 60000000000 AS w FROM (SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toUInt64(count), 1) AS n, if(dist, sum, value) AS s, if(dist, min, value) AS lo, if(dist, max, value) AS hi, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu
FROM `db`.`cpu`
WHERE type = {metric:String} AND ts > fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND points IN ('', 'gauge', 'delta', 'cumulative') AND ((month, shard) IN ((202601,0),(202601,72057594037927936))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 9) AND throwIf((SELECT count() FROM `db`.`cpu.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND 1 AND NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`cpu.repeats`))))
GROUP BY series, w
HAVING an > 0 AND throwIf(max(dist AND kind = 'cumulative'), 'almanac: points are distributions') = 0) AS a
INNER JOIN (SELECT series, unit AS g0, attributes[{by3:String}] AS g1 FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type = {metric:String} AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 9)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series) WHERE 1) AS l ON a.series = l.series))
GROUP BY g0, g1, w
ORDER BY g0, g1, w
LIMIT 11
FORMAT RowBinary;

-- align summary reduce p50 by [], distributions false
SELECT toJSONString([toString(g0)]), toInt64(w), toFloat64(v)
FROM (SELECT g0, w, quantileExactInclusive(0.5)(val) + throwIf(max(dist), 'almanac: points are distributions') AS v
FROM (SELECT g0, a.*
FROM (SELECT *, intDiv(t + 60000000000 - 1, 60000000000) * 60000000000 AS w FROM (SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toUInt64(count), 1) AS n, if(dist, sum, value) AS s, if(dist, min, value) AS lo, if(dist, max, value) AS hi, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu
FROM `db`.`cpu`
WHERE type = {metric:String} AND ts > fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND points IN ('', 'gauge', 'delta', 'cumulative') AND ((month, shard) IN ((202601,0),(202601,72057594037927936))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 9) AND throwIf((SELECT count() FROM `db`.`cpu.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND 1 AND NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`cpu.repeats`)))) AS a
INNER JOIN (SELECT series, unit AS g0 FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type = {metric:String} AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 9)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series) WHERE 1) AS l ON a.series = l.series)
GROUP BY g0, w)
ORDER BY g0, w
LIMIT 11
FORMAT RowBinary;

-- align p95 reduce mean by [], distributions true
SELECT toJSONString([toString(g0)]), toInt64(w), toFloat64(avg(v))
FROM (SELECT g0, a.*
FROM (SELECT series, w, v
FROM (
  SELECT series, w, alo, ahi, arraySort(bounds) AS ks, arrayMap(b -> if(has(m.1, b), arrayElement(m.2, indexOf(m.1, b)), 0.), ks) AS cs, arrayCumSum(cs) AS sums, 0.95 * sums[-1] AS target,
    arrayFirstIndex(x -> x >= target, sums) AS i, greatest(alo, if(i > 1, ks[i - 1], alo)) AS low, greatest(low, least(ahi, ks[i])) AS high,
    least(ahi, greatest(alo, low + (high - low) * (target - (sums[i] - cs[i])) / cs[i])) AS v
  FROM (
    SELECT series, w, minIf(lo, n > 0) AS alo, maxIf(hi, n > 0) AS ahi, groupUniqArrayArray(bk) AS bounds, sumMap(bk, bc) AS m
    FROM (SELECT *, intDiv(t + 60000000000 - 1, 60000000000) * 60000000000 AS w FROM (SELECT series, t, dist, kind, val, gn AS n, gs AS s, gq AS q, gmu AS mu, glo AS lo, ghi AS hi, bk, gc AS bc
FROM (
  SELECT series, t, dist, kind, val, cum, fresh, if(whole, n, greatest(n - n0, 0.)) AS gn, if(whole, s, s - s0) AS gs, if(gn = 0, 0., gs / gn) AS gmu,
    if(whole, q, greatest(q - q0 - if(n = 0, 0., n0 * gn / n * (gmu - mu0) * (gmu - mu0)), 0.)) AS gq, bk,
    multiIf(whole, bc,
      arraySum(arrayMap((b, c) -> if(has(bk, b), c, 0.), bk0, bc0)) = arraySum(bc0), arrayMap((b, c) -> greatest(c - if(has(bk0, b), arrayElement(bc0, indexOf(bk0, b)), 0.), 0.), bk, bc),
      arrayMap(c -> if(n = 0, 0., c * gn / n), bc)) AS gc,
    arrayFirstIndex(c -> c > 0, gc) AS g1, arrayLastIndex(c -> c > 0, gc) AS g2,
    if(whole OR g1 <= 1, lo, greatest(lo, bk[g1 - 1])) AS glo, if(whole OR g2 = 0, hi, least(hi, bk[g2])) AS ghi
  FROM (
    SELECT *, dist AND kind = 'cumulative' AS cum, t0 < 0 AS fresh, NOT cum OR n < n0 OR began != began0 AND began > 0 AND began0 > 0 AS whole
    FROM (
      SELECT *, lagInFrame(t, 1, toInt64(-1)) OVER o AS t0, lagInFrame(n) OVER o AS n0, lagInFrame(s) OVER o AS s0, lagInFrame(q) OVER o AS q0, lagInFrame(mu) OVER o AS mu0,
        lagInFrame(began) OVER o AS began0, lagInFrame(bk) OVER o AS bk0, lagInFrame(bc) OVER o AS bc0
      FROM (SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toFloat64(count), 1.) AS n, if(dist, sum, value) AS s, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu,
  if(dist AND buckets != '', arrayPushBack(JSONExtract(buckets, 'bounds', 'Array(Float64)'), inf), [if(dist, max, value)]) AS bk,
  if(dist AND buckets != '', arrayMap(c -> toFloat64(c), JSONExtract(buckets, 'counts', 'Array(UInt64)')), [n]) AS bc,
  (dist AND buckets != '' AND min = 0 AND max = 0 AND sum != 0) AS open, arrayFirstIndex(c -> c > 0, bc) AS b1, arrayLastIndex(c -> c > 0, bc) AS b2,
  multiIf(NOT dist, value, NOT open, min, b1 > 1, bk[b1 - 1], least(bk[1], 0.)) AS lo,
  multiIf(NOT dist, value, NOT open, max, bk[b2] = inf, bk[greatest(b2 - 1, 1)], bk[b2]) AS hi
FROM `db`.`cpu`
WHERE type = {metric:String} AND ts > fromUnixTimestamp64Nano({before:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND points IN ('', 'gauge', 'delta', 'cumulative') AND ((month, shard) IN ((202601,0),(202601,72057594037927936))) AND NOT (month = 202601 AND shard = 0 AND pos > 9) AND NOT (month = 202601 AND shard = 72057594037927936 AND pos > 9) AND throwIf((SELECT count() FROM `db`.`cpu.repeats` WHERE id != toUUID('00000000-0000-0000-0000-000000000000')) != 2, 'almanac: what is derived moved') = 0 AND 1 AND NOT ((id, shard, pos) IN (SELECT id, shard, pos FROM `db`.`cpu.repeats`)))
      WINDOW o AS (PARTITION BY series, dist ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW))))
WHERE t > {from:Int64} AND NOT (cum AND fresh)))
    GROUP BY series, w
    HAVING sum(n) > 0))) AS a
INNER JOIN (SELECT series, unit AS g0 FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type = {metric:String} AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 9)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series) WHERE 1) AS l ON a.series = l.series)
GROUP BY g0, w
ORDER BY g0, w
LIMIT 11
FORMAT RowBinary;

-- found in the list alone
SELECT toString(countIf(allowed)), toString(countIf(chosen)), toString(uniqExactIf((unit), chosen)), toJSONString(groupUniqArrayArrayIf(kinds_of_points, chosen)),
  toJSONString(arraySort(groupUniqArrayArrayIf(1000)(mapKeys(attributes), allowed))),
  toJSONString(arrayMap(x -> [toString(tupleElement(x, 1)), tupleElement(x, 2), tupleElement(x, 3), tupleElement(x, 4), toJSONString(tupleElement(x, 5))], groupArrayIf(200)((series, service, user_id, unit, attributes), chosen))),
  toJSONString(if(maxIf(length(places), chosen) >= 64, [], groupUniqArrayArrayIf(64)(places, chosen))),
  toJSONString(groupArrayArray(reach))
FROM (SELECT *, type != '' AND (1) AS allowed, allowed AND (`attributes`[{p1:String}] = {p2:String}) AS chosen FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArrayIf(points, last > fromUnixTimestamp64Nano({from:Int64}, 'UTC')) AS kinds_of_points, min(first) AS since, max(last) AS until,
  groupUniqArrayIf(64)([toUInt64(month), shard], type != '') AS places,
  groupUniqArrayIf([toUInt64(month), shard, pos], type = '') AS reach
FROM `db`.`cpu.series`
WHERE type = '' OR type = {metric:String} AND last > fromUnixTimestamp64Nano(toInt64(1767999600000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1
GROUP BY type, series
HAVING type = '' OR max(last) > fromUnixTimestamp64Nano({from:Int64}, 'UTC')))
FORMAT JSONCompactEachRow;

-- found in the list and in rows above it
SELECT toString(countIf(allowed)), toString(countIf(chosen)), toString(uniqExactIf((unit), chosen)), toJSONString(groupUniqArrayArrayIf(kinds_of_points, chosen)),
  toJSONString(arraySort(groupUniqArrayArrayIf(1000)(mapKeys(attributes), allowed))),
  toJSONString(arrayMap(x -> [toString(tupleElement(x, 1)), tupleElement(x, 2), tupleElement(x, 3), tupleElement(x, 4), toJSONString(tupleElement(x, 5))], groupArrayIf(200)((series, service, user_id, unit, attributes), chosen))),
  toJSONString([]),
  toJSONString([])
FROM (SELECT *, type != '' AND (1) AS allowed, allowed AND (`attributes`[{p1:String}] = {p2:String}) AS chosen FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM (SELECT type, series, any(toString(service)) AS service, any(user_id) AS user_id, any(toString(unit)) AS unit,
  any(CAST(attributes, 'Map(String, String)')) AS labels, groupUniqArray(toString(points)) AS points, min(ts) AS first, max(ts) AS last
FROM `db`.`cpu` WHERE type = {metric:String} AND ts > fromUnixTimestamp64Nano({from:Int64}, 'UTC') AND ts <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND ((month, shard) NOT IN ((202601,0),(202601,72057594037927936)) OR (month = 202601 AND shard = 0 AND pos > 9) OR (month = 202601 AND shard = 72057594037927936 AND pos > 4)) GROUP BY type, series)
  UNION ALL
  SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type = {metric:String} AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 4)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series))
FORMAT JSONCompactEachRow;

-- list
SELECT type, service, user_id, unit, toJSONString(attributes), toJSONString(arraySort(arrayFilter(p -> p != '', kinds_of_points))),
  toString(toUnixTimestamp64Nano(since)), toString(toUnixTimestamp64Nano(until))
FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type != '' AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 9)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series)
WHERE `service` = {p1:String}
ORDER BY type, service, user_id, unit, toString(attributes)
LIMIT 7
FORMAT JSONCompactEachRow;

-- list with keys
SELECT type, service, user_id, unit, toJSONString(attributes), toJSONString(arraySort(arrayFilter(p -> p != '', kinds_of_points))),
  toString(toUnixTimestamp64Nano(since)), toString(toUnixTimestamp64Nano(until)), toString(series)
FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type != '' AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 9)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series)
WHERE `service` = {p1:String}
LIMIT 7
FORMAT JSONCompactEachRow;

-- names
SELECT toString(series), service, user_id, unit, toJSONString(attributes)
FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type != '' AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 9)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series)
WHERE `service` = {p1:String}
FORMAT JSONCompactEachRow;

-- counts of metrics
SELECT name, toString(v), toString(n)
FROM (SELECT type AS name, toUInt64(0) AS v, count() AS n
  FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type != '' AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 9)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series)
  WHERE `service` = {p1:String}
  GROUP BY name)
ORDER BY n DESC, name
LIMIT 7
FORMAT JSONCompactEachRow;

-- counts of labels
SELECT name, toString(v), toString(n)
FROM (SELECT tupleElement(l, 1) AS name, uniqExact(tupleElement(l, 2)) AS v, count() AS n
  FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type != '' AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 9)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series)
  ARRAY JOIN arrayZip(mapKeys(attributes), mapValues(attributes)) AS l
  WHERE `service` = {p1:String}
  GROUP BY name)
ORDER BY n DESC, name
LIMIT 7
FORMAT JSONCompactEachRow;

-- narrower
SELECT name, toString(count()), toString(max(n) AS worst)
FROM (SELECT tupleElement(l, 1) AS name, tupleElement(l, 2) AS v, count() AS n
  FROM (SELECT series, attributes FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type != '' AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 9)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series) WHERE `service` = {p1:String})
  ARRAY JOIN arrayZip(mapKeys(attributes), mapValues(attributes)) AS l
  GROUP BY name, v)
GROUP BY name
HAVING worst <= 1500.5
ORDER BY worst DESC, name
LIMIT 5
FORMAT JSONCompactEachRow;

-- narrower by pairs
SELECT name, toString(count()), toString(max(n) AS worst)
FROM (SELECT concat(tupleElement(a, 1), ' with ', tupleElement(b, 1)) AS name, (tupleElement(a, 2), tupleElement(b, 2)) AS v, count() AS n
  FROM (
    SELECT series, a, arrayZip(mapKeys(attributes), mapValues(attributes)) AS all
    FROM (SELECT series, attributes FROM (SELECT type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, groupUniqArrayArray(points) AS kinds_of_points, min(first) AS since, max(last) AS until
FROM (SELECT type, series, service, user_id, unit, labels, points, first, last FROM `db`.`cpu.series` WHERE type != '' AND type != '' AND last > fromUnixTimestamp64Nano(toInt64(1768003200000000000), 'UTC') AND first <= fromUnixTimestamp64Nano({to:Int64}, 'UTC') AND 1 AND throwIf((SELECT count() FROM (SELECT month, shard, max(pos) AS p FROM `db`.`cpu.series` WHERE type = '' GROUP BY month, shard) WHERE (month = 202601 AND shard = 0 AND p >= 9) OR (month = 202601 AND shard = 72057594037927936 AND p >= 9)) != 2, 'almanac: what is derived moved') = 0)
GROUP BY type, series) WHERE `service` = {p1:String})
    ARRAY JOIN arrayZip(mapKeys(attributes), mapValues(attributes)) AS a)
  ARRAY JOIN all AS b
  WHERE tupleElement(a, 1) < tupleElement(b, 1)
  GROUP BY name, v)
GROUP BY name
HAVING worst <= 1500.5
ORDER BY worst DESC, name
LIMIT 5
FORMAT JSONCompactEachRow;

-- estimate
SELECT table, toString(sum(rows))
FROM (EXPLAIN ESTIMATE SELECT series, ts, value FROM `db`.`cpu` WHERE 1)
WHERE table = 'cpu'
GROUP BY table
FORMAT JSONCompactEachRow;

-- samples
SELECT series, toInt64(toUnixTimestamp64Nano(ts)), value, toUInt8(multiIf(count > 0 OR buckets != '', 5, points = 'stale', 1, points = 'nan', 2, points = '+inf', 3, points = '-inf', 4, 0))
FROM `db`.`cpu`
WHERE type IN ('it\'s', 'b') AND series IN ('1329227995784915872903807060280344576', '2658455991569831745807614120560689152') AND ts > fromUnixTimestamp64Nano(1768003200000000000, 'UTC') AND ts <= fromUnixTimestamp64Nano(1768006800000000000, 'UTC') AND 1 AND 1
ORDER BY type, series, ts, toUInt128(id) DESC
LIMIT 1 BY type, series, ts
FORMAT RowBinary;

