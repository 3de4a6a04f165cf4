SELECT series, w, {{.ValueSQL}} AS v
FROM (SELECT series, n, {{.WindowSQL}} AS w FROM ({{template "series/grown" .Points}}) WHERE dist)
GROUP BY series, w
