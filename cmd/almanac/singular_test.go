package main

import "testing"

func TestSingular(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1 rows":                                       "1 row",
		"about 1 rows (371 B) in 1 shards":             "about 1 row (371 B) in 1 shard",
		"11 rows, 0 rows, 2 rows":                      "11 rows, 0 rows, 2 rows",
		"2.1 rows, 1,001 rows, n-1 rows":               "2.1 rows, 1,001 rows, n-1 rows",
		"1 events were erased, and 21 events were not": "1 event was erased, and 21 events were not",
		"1 shards are overdue":                         "1 shard is overdue",
		"1 messages have no frame":                     "1 message has no frame",
		"1 rowset, 1 rowss":                            "1 rowset, 1 rowss",
		"1 dead letters":                               "1 dead letter",
	} {
		if got := singular(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
