SELECT {{.Keys}}, w, quantileExactInclusive({{.Level}})(val){{.Distributions}} AS v
FROM ({{.Rows}})
GROUP BY {{.Keys}}, w
