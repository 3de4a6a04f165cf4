package elastic

import (
	"regexp"
	"strings"

	"github.com/almanac-events/almanac/schemas"
)

// dated is the date or month with which clients end an index: -2026.11.20,
// -2026-11-20, .2026.11.
var dated = regexp.MustCompile(`[-.][0-9]{4}[.-][0-9]{2}([.-][0-9]{2})?$`)

// TopicOf returns the topic that an index names, or nil: the first of Names that there is.
func TopicOf(index string, topic func(name string) *schemas.Topic) *schemas.Topic {
	for _, name := range Names(index) {
		if t := topic(name); t != nil {
			return t
		}
	}
	return nil
}

// Names returns the names of topics that an index may mean, the likeliest first: its own, that without its
// date, and either with "_" in place of "-".
func Names(index string) []string {
	names := []string{index}
	if short := dated.ReplaceAllString(index, ""); short != index {
		names = append(names, short)
	}
	for _, n := range names {
		if under := strings.ReplaceAll(n, "-", "_"); under != n {
			names = append(names, under)
		}
	}
	return names
}
