package loki

import (
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/schemas/rawjson"
)

// parseLabels reads labels as a stream selector writes them: {app="web",level="info"}.
// False: it is not one, as with clients that do not escape quotes in values.
func parseLabels(text string) (pairs []rawjson.Pair, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "{")
	if !ok {
		return nil, false
	}
	for {
		rest = strings.TrimLeft(rest, " \t")
		if rest == "}" {
			return pairs, true
		}
		name, after, found := strings.Cut(rest, "=")
		name = strings.TrimRight(name, " \t")
		if !found || name == "" || strings.ContainsAny(name, "\"`{},") {
			return nil, false
		}
		quoted, err := strconv.QuotedPrefix(strings.TrimLeft(after, " \t"))
		if err != nil || quoted[0] == '\'' {
			return nil, false
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, false
		}
		pairs = append(pairs, rawjson.Pair{Key: name, Value: value})
		rest = strings.TrimLeft(strings.TrimLeft(after, " \t")[len(quoted):], " \t")
		if more, comma := strings.CutPrefix(rest, ","); comma {
			rest = more
		} else if rest != "}" {
			return nil, false
		}
	}
}
