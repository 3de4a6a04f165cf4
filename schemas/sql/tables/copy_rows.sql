-- Asserted: nothing is stored behind the position that the copy follows.
INSERT INTO {{.To}} ({{.Columns}})
SELECT {{.Columns}}
FROM {{.From}}
WHERE month = {{.Month}} AND shard = {{.Shard}} AND pos > {{.Above}} AND pos <= {{.UpTo}}
  AND throwIf((SELECT count() FROM {{.To}} WHERE month = {{.Month}} AND shard = {{.Shard}} AND pos > {{.Above}}) != 0, '{{.Moved}}') = 0
