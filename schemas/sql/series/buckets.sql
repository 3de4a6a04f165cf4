-- A value is a bucket of its own; a distribution without buckets is one, and of one without least and
-- greatest (open) they are the ends of the buckets that have values, the first (b1) to the last (b2).
SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toFloat64(count), 1.) AS n, if(dist, sum, value) AS s, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu,
  if(dist AND buckets != '', arrayPushBack(JSONExtract(buckets, 'bounds', 'Array(Float64)'), inf), [if(dist, max, value)]) AS bk,
  if(dist AND buckets != '', arrayMap(c -> toFloat64(c), JSONExtract(buckets, 'counts', 'Array(UInt64)')), [n]) AS bc,
  (dist AND buckets != '' AND min = 0 AND max = 0 AND sum != 0) AS open, arrayFirstIndex(c -> c > 0, bc) AS b1, arrayLastIndex(c -> c > 0, bc) AS b2,
  multiIf(NOT dist, value, NOT open, min, b1 > 1, bk[b1 - 1], least(bk[1], 0.)) AS lo,
  multiIf(NOT dist, value, NOT open, max, bk[b2] = inf, bk[greatest(b2 - 1, 1)], bk[b2]) AS hi
FROM {{.Table}}
WHERE {{.Where}}
