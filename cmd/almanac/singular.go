package main

import "regexp"

// countOfOne is a count of 1 before the plural of what Almanac counts, and the verb after it.
var countOfOne = regexp.MustCompile(`(^|[^0-9.,:-])1 (different |dead )?(check|event|field|frame|lane|letter|message|month|part|position|problem|row|shard|stream|topic)s( (?:were|are|have))?\b`)

// singular corrects the counts of one in a message: "1 rows were" becomes "1 row was".
func singular(text string) string {
	return countOfOne.ReplaceAllStringFunc(text, func(found string) string {
		m := countOfOne.FindStringSubmatch(found)
		return m[1] + "1 " + m[2] + m[3] + map[string]string{" were": " was", " are": " is", " have": " has"}[m[4]]
	})
}
