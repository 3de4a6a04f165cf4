SELECT {{.Columns}}
FROM {{.Table}}
WHERE {{.Where}} AND pos > {{.Above}} AND pos <= {{.UpTo}}
ORDER BY pos, ts, {{.IDOrderSQL}}
FORMAT Native
