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

// A verb for topics of a kind takes one of that kind alone, and says how to declare one.
func TestTopicOfAKind(t *testing.T) {
	t.Parallel()
	r := open(t)
	ctx := timeout(t)
	for name, kind := range map[string]schemas.Kind{"app": kinds.Log, "usage": kinds.Meter} {
		if _, _, err := r.Apply(ctx, schemas.NewTopicOf(kind, name), false); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		topic string
		kind  schemas.Kind
		want  string // empty: it is given
	}{
		"that kind":    {"usage", kinds.Meter, ""},
		"any kind":     {"usage", "", ""},
		"another kind": {"app", kinds.Meter, "of kind log, and this is for topics of kind meter: declare one with `almanac topics apply NAME --kind meter`"},
		"no topic":     {"nosuch", kinds.Meter, "`almanac topics apply nosuch --kind meter`"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := r.TopicOf(ctx, c.topic, c.kind)
			if c.want == "" {
				if err != nil || got.Name != c.topic {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			if !errors.Is(err, schemas.ErrRequest) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if wrong := (*WrongKindError)(nil); errors.As(err, &wrong) != (c.topic == "app") {
				t.Errorf("%v: a WrongKindError: %v", err, wrong != nil)
			}
		})
	}
}
