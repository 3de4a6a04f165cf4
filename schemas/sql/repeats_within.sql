SELECT tupleElement(tupleElement(p, 2), 3) AS month, tupleElement(tupleElement(p, 2), 4) AS shard, tupleElement(tupleElement(p, 2), 5) AS pos, tupleElement(tupleElement(p, 2), 2) AS id,
  tupleElement(tupleElement(p, 1), 2) AS first, tupleElement(tupleElement(p, 1), 3) AS first_month, tupleElement(tupleElement(p, 1), 4) AS first_shard,
  tupleElement(tupleElement(p, 2), 6) != tupleElement(tupleElement(p, 1), 6) AS other
FROM (
  SELECT arraySort(x -> (tupleElement(x, 1), toUInt128(tupleElement(x, 2)), tupleElement(x, 3), tupleElement(x, 4), tupleElement(x, 5)), groupArray((ts, id, month, shard, pos, {{.Said}}))) AS same
  FROM {{.Table}}
  -- A copy lies within this of the event before it, so that rows further away are not read.
  WHERE ts >= (SELECT min(ts) FROM {{.Table}} WHERE {{.In}} AND ({{.New}})) - INTERVAL {{.Within}} SECOND
    AND ts <= (SELECT max(ts) FROM {{.Table}} WHERE {{.In}} AND ({{.New}})) + INTERVAL {{.Within}} SECOND
    AND {{.In}} AND identity IN (
      SELECT identity FROM {{.Table}}
      WHERE {{.In}} AND identity IN (SELECT identity FROM {{.Table}} WHERE {{.In}} AND ({{.New}}))
      GROUP BY identity HAVING count() > 1)
  GROUP BY {{.Once}} HAVING count() > 1)
ARRAY JOIN arrayFilter(x -> (tupleElement(tupleElement(x, 1), 2), tupleElement(tupleElement(x, 1), 4), tupleElement(tupleElement(x, 1), 5)) != (tupleElement(tupleElement(x, 2), 2), tupleElement(tupleElement(x, 2), 4), tupleElement(tupleElement(x, 2), 5))
  AND toUnixTimestamp64Nano(tupleElement(tupleElement(x, 2), 1)) - toUnixTimestamp64Nano(tupleElement(tupleElement(x, 1), 1)) <= {{.Within}} * 1000000000,
  arrayZip(arrayPopBack(same), arrayPopFront(same))) AS p
