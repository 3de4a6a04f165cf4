package schemas

import (
	"fmt"
	"slices"
	"strings"
)

// ValidateTopicName reports why s cannot name a topic.
func ValidateTopicName(s string) error {
	if !validName(s) {
		return fmt.Errorf("%w: %q must match [a-z][a-z0-9_]{0,62}", ErrTopicName, s)
	}
	if slices.Contains(reservedTopics, s) {
		return fmt.Errorf("%w: %q is reserved", ErrTopicName, s)
	}
	if slices.ContainsFunc(reservedViews, func(suffix string) bool { return strings.HasSuffix(s, suffix) }) || strings.HasPrefix(s, viewPrefix) {
		return fmt.Errorf("%w: %q is reserved for a view; a topic's name neither ends in %s nor begins with %s", ErrTopicName, s, strings.Join(reservedViews, ", "), viewPrefix)
	}
	return nil
}

var reservedTopics = []string{keyTopics, keyLeases, keyLedger, keyJobs, keyLetters, keyGroups}
