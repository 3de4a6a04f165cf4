SELECT t.`group` AS `group`, t.timer_id AS timer_id, argMax(t.state, t.seq) AS state, argMax(t.due, t.seq) AS due,
 argMax(t.revision, t.seq) AS revision, argMax(t.attempt, t.seq) AS attempt, argMax(t.status, t.seq) AS status,
 maxIf(t.ts, t.state IN ('done', 'failed')) AS executed_at, min(t.ts) AS created_at, max(t.ts) AS updated_at
 FROM {{.Table}} AS t GROUP BY t.`group`, t.timer_id
