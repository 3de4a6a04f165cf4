package elastic

import (
	"regexp"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// dated is the date or month with which clients end an index: -2026.11.20,
// -2026-11-20, .2026.11.
var dated = regexp.MustCompile(`[-.][0-9]{4}[.-][0-9]{2}([.-][0-9]{2})?$`)

// TopicOf returns the topic that an index names, or nil: the one of that name, else
// of the name without its date, else of either with "_" in place of "-".
func TopicOf(index string, topic func(name string) *schemas.Topic) *schemas.Topic {
	names := []string{index}
	if short := dated.ReplaceAllString(index, ""); short != index {
		names = append(names, short)
	}
	for _, n := range names {
		if t := topic(n); t != nil {
			return t
		}
	}
	for _, n := range names {
		if under := strings.ReplaceAll(n, "-", "_"); under != n {
			if t := topic(under); t != nil {
				return t
			}
		}
	}
	return nil
}
