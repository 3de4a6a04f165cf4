SELECT pos, count()
FROM {{.Table}}
WHERE {{.Where}} AND pos > {{.Above}} AND pos <= {{.UpTo}}
GROUP BY pos
ORDER BY pos
{{- if .Limit}}
LIMIT {{.Limit}}
{{- end}}
FORMAT TSV
