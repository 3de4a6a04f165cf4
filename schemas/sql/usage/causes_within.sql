-- same: the equal diffs by time and id. counting: those of them that count; the ninth element says that
-- the diff which counts was dropped with its shard.
SELECT type, provider, space, tupleElement(one, 5) AS user_id, cause, tupleElement(one, 3) AS id, tupleElement(one, 1) AS ts,
  toUnixTimestamp64Milli(ts) AS t, tupleElement(one, 4) AS delta, true AS c, if(one = counting[1], length(same) - length(counting), 0) AS rep,
  tupleElement(one, 6) AS month, tupleElement(one, 7) AS shard, tupleElement(one, 8) AS pos
FROM (
  SELECT type, provider, space, cause,
    arraySort(groupArray((ts, toUInt128(id), id, delta, user_id, month, shard, pos, {{.AfterDropped}}))) AS same,
    arrayFilter((x, i) -> NOT tupleElement(x, 9) AND (i = 1 OR toUnixTimestamp64Nano(tupleElement(x, 1)) - toUnixTimestamp64Nano(tupleElement(same[i - 1], 1)) > {{.Within}}), same, arrayEnumerate(same)) AS counting
  FROM {{.Table}}
  WHERE {{.Where}}
  GROUP BY type, provider, space, cause)
ARRAY JOIN counting AS one
