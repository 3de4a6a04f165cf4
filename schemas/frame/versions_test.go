package frame

import (
	"errors"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// A frame of version 1 still opens under the grown topic.
func TestOldFramesOpen(t *testing.T) {
	one := schemas.NewTopic("app", schemas.Field{Name: "a", Type: schemas.TypeString})
	want := one
	want.Fields = []schemas.Field{{Name: "b", Type: schemas.TypeInt64}, {Name: "a", Type: schemas.TypeString}}
	two, err := one.Evolve(want)
	if err != nil {
		t.Fatal(err)
	}
	_, payload := buildFrame(t, &one, []schemas.Event{{Message: "x", Attrs: []schemas.Attr{schemas.String("a", "1"), schemas.String("b", "2")}}})
	var r Reader
	if err := r.Open(payload, &two, 1); err != nil {
		t.Error(err)
	}
	if err := r.Open(payload, &two, 2); !errors.Is(err, schemas.ErrFrameColumns) {
		t.Errorf("opened as version 2: %v", err)
	}
}
