-- A row of the sums has its days as arrays: the day of the month from 1, then what sums have.
SELECT type, provider, space, user_id, month, day < {from:Int64} AS past, mstart + (toInt64(tupleElement(d, 1)) - 1) * {{.DayMs}} AS day,
  tupleElement(d, 2) AS n, tupleElement(d, 3) AS repeats, tupleElement(d, 4) AS delta, tupleElement(d, 5) AS weighted, mend
FROM (
  SELECT type, provider, space, user_id, month, {{.BeginsSQL}} AS mstart, {{.EndsSQL}} AS mend, days
  FROM {{.Sums}}
  WHERE (month, shard) IN ({{.Shards}}) AND {{.Where}})
ARRAY JOIN arrayZip(tupleElement(days, 1), tupleElement(days, 2), tupleElement(days, 3), tupleElement(days, 4), tupleElement(days, 5)) AS d
WHERE day < {to:Int64}
