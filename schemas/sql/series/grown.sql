-- What ends in 0 is of the point before. A lower count or another start is a reset, and then it is all
-- (whole). Buckets whose bounds changed are taken in proportion.
SELECT series, t, dist, kind, val, gn AS n, gs AS s, gq AS q, gmu AS mu, glo AS lo, ghi AS hi, bk, gc AS bc
FROM (
  SELECT series, t, dist, kind, val, cum, fresh, if(whole, n, greatest(n - n0, 0.)) AS gn, if(whole, s, s - s0) AS gs, if(gn = 0, 0., gs / gn) AS gmu,
    -- The squares of the whole are those of both parts and of the distance of their means.
    if(whole, q, greatest(q - q0 - if(n = 0, 0., n0 * gn / n * (gmu - mu0) * (gmu - mu0)), 0.)) AS gq, bk,
    multiIf(whole, bc,
      arraySum(arrayMap((b, c) -> if(has(bk, b), c, 0.), bk0, bc0)) = arraySum(bc0), arrayMap((b, c) -> greatest(c - if(has(bk0, b), arrayElement(bc0, indexOf(bk0, b)), 0.), 0.), bk, bc),
      arrayMap(c -> if(n = 0, 0., c * gn / n), bc)) AS gc,
    arrayFirstIndex(c -> c > 0, gc) AS g1, arrayLastIndex(c -> c > 0, gc) AS g2,
    if(whole OR g1 <= 1, lo, greatest(lo, bk[g1 - 1])) AS glo, if(whole OR g2 = 0, hi, least(hi, bk[g2])) AS ghi
  FROM (
    SELECT *, dist AND {{.CumulativeSQL}} AS cum, t0 < 0 AS fresh, NOT cum OR n < n0 OR began != began0 AND began > 0 AND began0 > 0 AS whole
    FROM (
      SELECT *, lagInFrame(t, 1, toInt64(-1)) OVER o AS t0, lagInFrame(n) OVER o AS n0, lagInFrame(s) OVER o AS s0, lagInFrame(q) OVER o AS q0, lagInFrame(mu) OVER o AS mu0,
        lagInFrame(began) OVER o AS began0, lagInFrame(bk) OVER o AS bk0, lagInFrame(bc) OVER o AS bc0
      FROM ({{template "series/buckets" .Points}})
      -- A series may have values and distributions: each has the point before of its own.
      WINDOW o AS (PARTITION BY series, dist ORDER BY t ROWS BETWEEN 1 PRECEDING AND CURRENT ROW))))
WHERE t > {from:Int64} AND NOT (cum AND fresh)
