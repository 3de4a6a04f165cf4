-- Asserted: the head is what the insert follows, neither above, because another was faster, nor below, because
-- ClickHouse was restored from an older copy. A stalled insert is refused by the server's own clock, long
-- before the deduplication window could have forgotten its token.
INSERT INTO {{.Table}} ({{.Columns}}, month, shard, pos)
SELECT {{.Columns}}, {{.Month}}, {{.Shard}}, {{.Pos}}
FROM {{.Frames}}
WHERE throwIf((SELECT max(pos) FROM {{.Table}} WHERE month = {{.Month}} AND shard = {{.Shard}}) != {{.Head}}, '{{.Moved}}') = 0
  AND throwIf(nowInBlock() > now() + {{.Seconds}}, '{{.Tardy}}') = 0
  AND {{.Whole}}{{if .Keep}} AND ({{.Keep}}){{end}}
FORMAT Native
