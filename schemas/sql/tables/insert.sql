-- Asserted: the head is what the insert follows, neither above, because another was faster, nor below, because
-- ClickHouse was restored from an older copy. A stalled insert is refused by the server's own clock, long
-- before the deduplication window could have forgotten its token. The table is the one that was there when the
-- frames were read: its topic may have been removed since, and its name have another.
INSERT INTO {{.Table}} ({{.Columns}}, month, shard, pos)
SELECT {{.Columns}}, {{.Month}}, {{.Shard}}, {{.Pos}}
FROM {{.Frames}}
WHERE {{if .Same.UUID}}{{template "tables/same_table" .}}
  AND {{end}}throwIf((SELECT max(pos) FROM {{.Table}} WHERE month = {{.Month}} AND shard = {{.Shard}}) != {{.Head}}, '{{.Moved}}') = 0
  AND throwIf(nowInBlock() > now() + {{.Seconds}}, '{{.Tardy}}') = 0
  AND {{.Whole}}{{if .Keep}} AND ({{.Keep}}){{end}}
FORMAT Native
