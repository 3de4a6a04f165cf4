-- The slash lets an empty path be read.
SELECT doc_id, argMax(meant, at), min(meant), argMax(toUnixTimestamp64Nano(created), at), argMax(version, at), concat('/', argMax(path, at))
FROM (
  SELECT doc_id, created, path, ({{.Meant}}) AS meant, seq AS at, version
  FROM {{.Table}}
  WHERE {{.Where}} AND doc_id > {after:String})
GROUP BY doc_id
HAVING max(meant)
ORDER BY doc_id
LIMIT {{.Limit}}
FORMAT TSV
