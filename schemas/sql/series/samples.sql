SELECT series, toInt64(toUnixTimestamp64Nano(ts)), value, toUInt8({{.CodeSQL}})
FROM {{.Table}}
WHERE type IN ({{.Metrics}}) AND series IN ({{.Series}}) AND ts > fromUnixTimestamp64Nano({{.FromNs}}, 'UTC') AND ts <= fromUnixTimestamp64Nano({{.ToNs}}, 'UTC') AND {{.Where}}
ORDER BY type, series, ts, toUInt128(id) DESC
LIMIT 1 BY type, series, ts
FORMAT RowBinary
