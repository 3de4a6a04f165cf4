SELECT * FROM {{.Table}} WHERE op != 'removed' AND (doc_id, seq) IN (SELECT doc_id, max(seq) FROM {{.Table}} GROUP BY doc_id)
