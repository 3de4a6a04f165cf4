-- The end of the span k. The last day may be cut by the range.
{{if .ByMonth}}{{.EndsSQL}}{{else}}least({to:Int64}, (k + 1) * 86400000){{end}}
