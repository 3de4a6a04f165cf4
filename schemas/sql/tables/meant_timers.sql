SELECT `group`, timer_id, argMax(slot, seq), argMax(life, seq)
FROM {{.Table}}
WHERE {{.Where}} AND (`group`, timer_id) > ({after_group:String}, {after_id:String}) AND ({{.Meant}})
GROUP BY `group`, timer_id
ORDER BY `group`, timer_id
LIMIT {{.Limit}}
FORMAT TSV
