-- Ends a read that has cumulative distributions: what they grew by is to be read.
{{if .}} AND throwIf(max(dist AND kind = 'cumulative'), '{{.}}') = 0{{end}}
