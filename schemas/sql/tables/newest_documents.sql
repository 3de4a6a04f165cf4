-- One argMax of all: its columns are of one version. The slash lets an empty path be read.
SELECT doc_id, n.1, n.2, n.3, n.4, n.5, n.6, n.7, n.8, concat('/', n.9)
FROM (
  SELECT doc_id, argMax((op, toUnixTimestamp64Nano(created), toUnixTimestamp64Nano(ts), version, seq, length(body), month, shard, path), seq) AS n
  FROM {{.Table}}
  WHERE {{.Where}}
  GROUP BY doc_id)
ORDER BY doc_id
FORMAT TSV
