SELECT series, {{.AtSQL}}, {{.ValuesSQL}}
FROM ({{.Rows}})
ORDER BY series, {{.At}}
LIMIT {{.Limit}}
FORMAT RowBinary
