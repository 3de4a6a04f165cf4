SELECT *, {{.WindowSQL}} AS w FROM ({{.Points}})
