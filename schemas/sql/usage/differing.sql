-- A row when copies of a space may say something else than what counts: rows of one cause do now, or did when a copy
-- was marked. What was cleared since shows in the marks alone.
SELECT '1' AS differs
FROM {{.Table}}
PREWHERE space = {space:String}
WHERE {{.Where}}
GROUP BY type, provider, cause
HAVING min(delta) != max(delta) OR min(user_id) != max(user_id) OR max(id IN (SELECT id FROM {{.Marks}} WHERE other))
LIMIT 1
FORMAT JSONCompactEachRow
