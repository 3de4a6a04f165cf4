package query

import (
	"regexp"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

var (
	sqlToken  = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)
	sqlSource = regexp.MustCompile("(?i)\\b(?:from|join|table)\\s+([A-Za-z0-9_.`\"]+\\(?|\\()")
	// sqlNoTopic are sources without events: the server's own tables, and what makes rows of nothing.
	sqlNoTopic = regexp.MustCompile(`(?i)^(system\.|information_schema\.|numbers|zeros|one$|values\(|generate)`)
)

// TopicsNamed returns those of topics that a statement may read. A name counts wherever it is written, so there
// may be more than are read, never fewer: a statement that reads anything unknown, such as a view of the user's,
// may read them all.
func TopicsNamed(sql string, topics []string) []string {
	words := map[string]bool{}
	for _, w := range sqlToken.FindAllString(sql, -1) {
		words[w] = true
	}
	var named []string
	for _, t := range topics {
		if words[t] || words[schemas.RecentView(t)] {
			named = append(named, t)
		}
	}
	for _, m := range sqlSource.FindAllStringSubmatch(sql, -1) {
		source := strings.NewReplacer("`", "", `"`, "").Replace(m[1])
		table := source[strings.LastIndexByte(source, '.')+1:]
		switch {
		case source == "(" || sqlNoTopic.MatchString(source):
		case slices.ContainsFunc(topics, func(t string) bool { return table == t || table == schemas.RecentView(t) }):
		case !strings.HasSuffix(source, "(") && madeBefore(sql, table):
		default:
			return topics
		}
	}
	return named
}

// madeBefore reports whether a statement defines a name itself: WITH name AS (…).
func madeBefore(sql, name string) bool {
	return regexp.MustCompile(`(?is)\bwith\b.*\b` + regexp.QuoteMeta(name) + `\s+as\s*\(`).MatchString(sql)
}
