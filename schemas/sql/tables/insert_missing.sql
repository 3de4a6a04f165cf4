-- Rows are told apart by all that a frame says of them and by their position. The n-th of equal ones is missing
-- when the table has less than n, so that a client which repeats itself gets each row back once. Done again it
-- inserts nothing. The table is the one that the frames were read for, as in insert.sql. What the join does not find has 0: join_use_nulls = 0.
INSERT INTO {{.Table}} ({{.Columns}}, month, shard, pos)
SELECT {{.Columns}}, {{.Month}}, {{.Shard}}, {{.Pos}}
FROM (
  SELECT *, sipHash128({{.Columns}}, toUInt64({{.Pos}})) AS _hash, row_number() OVER (PARTITION BY _hash) AS _nth
  FROM {{.Frames}}
  WHERE {{.Whole}}) AS f
LEFT JOIN (
  SELECT sipHash128({{.Columns}}, pos) AS _there, count() AS _have
  FROM {{.Table}}
  WHERE month = {{.Month}} AND shard = {{.Shard}} AND pos > {{.Above}} AND pos <= {{.UpTo}}
  GROUP BY _there) AS h ON f._hash = h._there
WHERE {{if .Same.UUID}}{{template "tables/same_table" .}} AND {{end}}_nth > _have AND ({{.Keep}})
FORMAT Native
