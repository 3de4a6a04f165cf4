-- ks: the ends of all buckets, cs: how many values each has, sums: up to each. The bucket i has the one
-- that is looked for, and it lies between low and high in proportion.
SELECT {{.Keys}}, w, v
FROM (
  SELECT {{.Keys}}, w, alo, ahi, arraySort(bounds) AS ks, arrayMap(b -> if(has(m.1, b), arrayElement(m.2, indexOf(m.1, b)), 0.), ks) AS cs, arrayCumSum(cs) AS sums, {{.Level}} * sums[-1] AS target,
    arrayFirstIndex(x -> x >= target, sums) AS i, greatest(alo, if(i > 1, ks[i - 1], alo)) AS low, greatest(low, least(ahi, ks[i])) AS high,
    least(ahi, greatest(alo, low + (high - low) * (target - (sums[i] - cs[i])) / cs[i])) AS v
  FROM (
    SELECT {{.Keys}}, w, minIf(lo, n > 0) AS alo, maxIf(hi, n > 0) AS ahi, groupUniqArrayArray(bk) AS bounds, sumMap(bk, bc) AS m
    FROM ({{.Rows}})
    GROUP BY {{.Keys}}, w
    HAVING sum(n) > 0))
