-- The row with the id of zeros has the epoch in first_shard. Asserted: the epoch is there, so the marks are too.
INSERT INTO {{.Repeats}} (month, shard, pos, id, rows, first_shard, marks)
SELECT {{.Month}}, {{.Shard}}, {{.To}}, toUUID('00000000-0000-0000-0000-000000000000'), {{.Rows}}, {{.Epoch}},
  (SELECT uniqExact(id, pos) FROM {{.Repeats}} WHERE month = {{.Month}} AND shard = {{.Shard}} AND id != toUUID('00000000-0000-0000-0000-000000000000'))
WHERE throwIf((SELECT count() FROM {{.Repeats}} WHERE month = {{.Month}} AND shard = {{.Shard}} AND id = toUUID('00000000-0000-0000-0000-000000000000') AND first_shard = {{.Epoch}}) = 0, '{{.Moved}}') = 0
