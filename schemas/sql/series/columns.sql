-- Rows of the list as one series. Its kinds of points are those of rows for which a condition holds, if one is given.
type, series, any(service) AS service, any(user_id) AS user_id, any(unit) AS unit, any(labels) AS attributes, {{if .}}groupUniqArrayArrayIf(points, {{.}}){{else}}groupUniqArrayArray(points){{end}} AS kinds_of_points, min(first) AS since, max(last) AS until
