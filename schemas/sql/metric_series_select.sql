SELECT type, series, any(toString(service)) AS service, any(user_id) AS user_id, any(toString(unit)) AS unit,
  any(CAST(attributes, 'Map(String, String)')) AS labels, groupUniqArray(toString(points)) AS points, min(ts) AS first, max(ts) AS last
FROM {{.Table}} WHERE {{.Rows}} GROUP BY type, series
