throwIf((SELECT count() FROM system.tables WHERE database = {{.Same.Database}} AND name = {{.Same.Name}} AND uuid = {{.Same.UUID}}) = 0, {{.Same.Replaced}}) = 0
