-- First by life: that a life has begun, and what it calls, may be of other transitions than its newest. Columns are
-- named by their table: what is selected has names of theirs.
SELECT g, i, n.1, n.2, n.3, n.4, n.5, n.6, n.7, n.8, n.9, n.10
FROM (
  SELECT g, i, argMax((life, slot, op, revision, attempt, due, ts, seq, begun, spec), seq) AS n
  FROM (
    SELECT t.`group` AS g, t.timer_id AS i, t.life AS life, argMax(t.slot, t.seq) AS slot, argMax(t.state, t.seq) AS op, argMax(t.revision, t.seq) AS revision,
      argMax(t.attempt, t.seq) AS attempt, argMax(toUnixTimestamp64Nano(t.due), t.seq) AS due, argMax(toUnixTimestamp64Nano(t.ts), t.seq) AS ts, max(t.seq) AS seq,
      max(t.state IN ('{{.Created}}', '{{.Restored}}')) AS begun, max(t.spec != '') AS spec
    FROM {{.Table}} AS t
    WHERE {{.Where}}
    GROUP BY g, i, life)
  GROUP BY g, i)
FORMAT TSV
