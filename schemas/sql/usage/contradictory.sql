SELECT toString(toUnixTimestamp64Nano(ts)), toString(id), type, provider, space, user_id, cause, toString(delta), toString(shard), toString(pos)
FROM {{.Table}}
WHERE {{.Where}} AND id IN (SELECT arrayJoin([id, first]) FROM ({{template "usage/contradicting_ids" .Pairs}}))
FORMAT JSONCompactEachRow
