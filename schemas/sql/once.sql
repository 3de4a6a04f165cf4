SELECT * FROM {{.Table}} WHERE (id, shard, pos) NOT IN (SELECT id, shard, pos FROM {{.Repeats}})
