SELECT series, toUnixTimestamp64Nano(ts) AS t, value AS val, toUnixTimestamp64Nano(start) AS began, points AS kind, (count > 0 OR buckets != '') AS dist,
  if(dist, toUInt64(count), 1) AS n, if(dist, sum, value) AS s, if(dist, min, value) AS lo, if(dist, max, value) AS hi, if(dist, m2, 0.) AS q, if(n = 0, 0., s / n) AS mu
FROM {{.Table}}
WHERE {{.Where}}
