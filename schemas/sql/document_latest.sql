SELECT * FROM (SELECT * FROM {{.Table}} ORDER BY path, created, doc_id, version DESC LIMIT 1 BY path, created, doc_id) WHERE op != 'removed'
