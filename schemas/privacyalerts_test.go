package schemas

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas/kinds"
)

// A rule that would change what alerts are found again by is refused, by whichever name and whatever it does; texts and users may have one.
func TestRulesOfTheTopicOfAlerts(t *testing.T) {
	t.Parallel()
	for field, refused := range map[string]bool{
		"value": true, "attributes.value": true, "by": true, "VALUE": true, "calls": true, "label.severity": true, kinds.ColRequestID: true, ColService: true, "attributes.user_id": true,
		ColUserID: false, ColMessage: false, wordMsg: false,
	} {
		for _, name := range []string{TopicAlerts, "trail"} {
			topic := NewTopicOf(kinds.Audit, name)
			topic.PII = []Private{{Field: field, Rule: PrivacyHash}}
			err := topic.Validate()
			if is := err != nil && strings.Contains(err.Error(), "alerts are found again by it"); is != (refused && name == TopicAlerts) {
				t.Errorf("%s of topic %s: %v", field, name, err)
			}
		}
	}
}
