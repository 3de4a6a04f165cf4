package registry

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// Whatever kind of topic was asked for, the hint declares one of that kind.
func TestUnknownTopicNamesItsKind(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds.All() {
		err := fmt.Errorf("asked: %w", &UnknownTopicError{Name: "iam", Kind: kind})
		want := fmt.Sprintf("`almanac topics apply iam --kind %s`", kind)
		if kind == kinds.Log {
			want = "`almanac topics apply iam`"
		}
		if !errors.Is(err, schemas.ErrUnknownTopic) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A slip of the keyboard is told from a name that nothing has: producers, the gateway and verbs say this text.
func TestUnknownTopicNamesTheNearest(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"spll": `unknown topic "spll", did you mean spill? Declared: app, spill. Declare it with`, "nothinglikeit": ""} {
		t.Run(name, func(t *testing.T) {
			err := (&UnknownTopicError{Name: name, Known: []string{"app", "spill"}}).Error()
			if want != "" && !strings.Contains(err, want) || want == "" && strings.Contains(err, "mean") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
