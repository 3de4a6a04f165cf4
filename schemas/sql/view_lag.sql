{{- /* A part that was inserted and since merged is listed for some minutes more. */ -}}
SELECT table AS topic, sumIf(rows, active) AS stored_rows, maxIf(max_time, active) AS newest_event,
 dateDiff('second', newest_event, now('UTC')) AS event_lag_seconds,
 maxIf(modification_time, level = 0) AS newest_insert
 FROM system.parts WHERE {{.In}} GROUP BY table
