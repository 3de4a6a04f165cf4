SELECT toJSONString([{{.TextsSQL}}]), toInt64(w), {{.ValuesSQL}}
FROM ({{.Rows}})
{{- if not .Reduced}}
GROUP BY {{.Groups}}, w
{{- end}}
ORDER BY {{.Groups}}, w
LIMIT {{.Limit}}
FORMAT RowBinary
