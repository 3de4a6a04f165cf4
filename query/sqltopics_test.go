package query

import (
	"slices"
	"testing"
)

func TestTopicsNamed(t *testing.T) {
	t.Parallel()
	all := []string{"app", "auth", "web"}
	for sql, want := range map[string][]string{
		"SELECT 1":                    nil,
		"SELECT count() FROM app":     {"app"},
		"SELECT count()\nFROM\n`app`": {"app"},
		"select * from almanac.auth a join web_recent w using id":     {"auth", "web"},
		"SELECT * FROM app, auth":                                     {"app", "auth"},
		"SELECT * FROM (SELECT * FROM web)":                           {"web"},
		"WITH x AS (SELECT * FROM app) SELECT * FROM x":               {"app"},
		"SELECT name FROM system.tables":                              nil,
		"SELECT number FROM numbers(10)":                              nil,
		"SELECT (SELECT count() FROM app), (SELECT max(ts) FROM web)": {"app", "web"},
		"SELECT * FROM merge('almanac', '.*')":                        all,
		"SELECT * FROM almanac_shards":                                all,
		"SELECT * FROM mine":                                          all,
		"SELECT * FROM app JOIN mine USING id":                        all,
		"SELECT * FROM application":                                   all,
		"EXPLAIN SELECT * FROM app":                                   {"app"},
		"DESCRIBE TABLE app":                                          {"app"},
		"SHOW TABLES":                                                 nil,
	} {
		if got := TopicsNamed(sql, all); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
}
