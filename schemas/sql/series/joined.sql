{{if .Means}}SELECT *, sum(asum) OVER (PARTITION BY {{.Groups}}, w) / sum(an) OVER (PARTITION BY {{.Groups}}, w) AS gm FROM ({{end}}
{{- /* The labels are the listed series', of which points have the key alone. */ -}}
SELECT {{.Groups}}, a.*
FROM ({{.Rows}}) AS a
INNER JOIN (SELECT series, {{.KeysSQL}} FROM ({{.Listed}}) WHERE {{.Where}}) AS l ON a.series = l.series
{{- if .Means}}){{end}}
