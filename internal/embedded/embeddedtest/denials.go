package embeddedtest

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/access"
)

// denial is how the engine's log says that an account was refused something.
var denial = regexp.MustCompile(`executeQuery: Code: 497\. DB::Exception: (\w+): Not enough privileges\..*?\(ACCESS_DENIED\)`)

// denials are what an engine refused to the accounts of Almanac's parts, by its log. People's SQL may try what it likes.
func denials(log string) (all []string) {
	text, err := os.ReadFile(log)
	if err != nil {
		return []string{err.Error()}
	}
	for _, found := range denial.FindAllStringSubmatch(string(text), -1) {
		ours := slices.ContainsFunc(access.ClickHouseUsers(), func(u access.ClickHouseUser) bool { return u.Name == found[1] && u.Name != access.UserReader })
		if line := strings.TrimPrefix(found[0], "executeQuery: "); ours && !slices.Contains(all, line) {
			all = append(all, line)
		}
	}
	return all
}
