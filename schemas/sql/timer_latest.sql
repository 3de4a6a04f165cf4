SELECT t.`group` AS `group`, t.timer_id AS timer_id, argMax(t.slot, t.seq) AS slot, argMax(t.life, t.seq) AS life, if(argMax(t.state, t.seq) IN ('firing', 'done', 'failed', 'cancelled'), argMax(t.state, t.seq), 'pending') AS state, argMax(t.due, t.seq) AS due,
 argMax(t.revision, t.seq) AS revision, argMax(t.attempt, t.seq) AS attempt, argMax(t.status, t.seq) AS status,
 if(argMax(t.state, t.seq) IN ('done', 'failed'), argMax(toNullable(t.ts), t.seq), NULL) AS executed_at,
 argMaxIf(toNullable(t.ts), t.seq, t.state = 'created') AS created_at, argMax(t.ts, t.seq) AS updated_at
 FROM {{.Table}} AS t GROUP BY t.`group`, t.timer_id
