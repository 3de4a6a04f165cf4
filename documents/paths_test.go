package documents

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// A change that names a path changes no document of another one, whatever the change; and says both paths.
func TestWritesThroughAnotherPath(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	body := []byte(`{}`)
	for _, n := range []Draft{{ID: "c-1", Path: "se/uppsala", Body: body}, {ID: "root", Body: body}} {
		if _, err := c.Create(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	for name, op := range map[string]Op{
		"a put": {Kind: Put, ID: "c-1", Path: "se/lund"}, "an update": {ID: "c-1", Path: "se/lund"}, "an update by version": {ID: "c-1", Path: "se/lund", If: IfVersion(1)},
		"a removal": {Kind: Remove, ID: "c-1", Path: "se/lund"}, "a removal from the root": {Kind: Remove, ID: "c-1", In: true}, "a put to a path above": {Kind: Put, ID: "c-1", Path: "se"},
		"a put below the root": {Kind: Put, ID: "root", Path: "se"},
	} {
		t.Run(name, func(t *testing.T) {
			if op.Body = body; op.Kind == Remove {
				op.Body = nil
			}
			for _, write := range []func() error{
				func() error { _, err := c.Write(ctx, op); return err },
				func() error { _, err := c.Batch(ctx, op, Op{Kind: Put, ID: "other", Body: body}); return err },
			} {
				err, other := write(), (*PathError)(nil)
				if !errors.As(err, &other) || !errors.Is(err, ErrPath) || other.Want != op.Path || other.Have == other.Want {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	if d, err := c.Load(ctx, "c-1"); err != nil || d.Version != 1 {
		t.Errorf("%+v, %v: something was written", d, err)
	}
	if _, err := c.Load(ctx, "other"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a part of a batch was written: %v", err)
	}
	for version, op := range []Op{{Kind: Put, ID: "c-1", Path: "se/uppsala", Body: body}, {Kind: Put, ID: "c-1", Body: body}, {Kind: Remove, ID: "c-1", Path: "se/uppsala"}} {
		if d, err := c.Write(ctx, op); err != nil || d.Path != "se/uppsala" || d.Version != uint64(version+2) {
			t.Errorf("%+v: %+v, %v", op, d, err)
		}
	}
	if d, err := c.Put(ctx, Draft{ID: "c-1", Path: "se/lund", Body: body}); err != nil || d.Path != "se/lund" || !d.Made {
		t.Errorf("an id that was removed, under another path: %+v, %v", d, err)
	}
}

// A document keeps the time at which it was created elsewhere, over updates too; one that is there keeps its own.
func TestCreatedElsewhere(t *testing.T) {
	t.Parallel()
	c, ctx := open(t, nil)
	then, body := time.Date(2019, 5, 6, 7, 8, 9, 123456789, time.UTC), []byte(`{}`)
	if d, err := c.Create(ctx, Draft{ID: "a", Created: then, Body: body}); err != nil || !d.Created.Equal(then) || !d.Changed.After(then) || !d.Made {
		t.Fatalf("%+v, %v", d, err)
	}
	if d, err := c.Put(ctx, Draft{ID: "b", Created: then, Body: body}); err != nil || !d.Created.Equal(then) || !d.Made {
		t.Errorf("a put that creates: %+v, %v", d, err)
	}
	if d, err := c.Put(ctx, Draft{ID: "a", Created: then.Add(time.Hour), Body: body}); err != nil || !d.Created.Equal(then) || d.Made {
		t.Errorf("a put that replaces: %+v, %v", d, err)
	}
	if d, err := c.Update(ctx, "a", Always, body); err != nil || !d.Created.Equal(then) {
		t.Errorf("an update: %+v, %v", d, err)
	}
	for name, op := range map[string]Op{
		"ahead":             {Kind: Create, ID: "x", Body: body, Created: time.Now().Add(time.Hour)},
		"before 1970":       {Kind: Create, ID: "x", Body: body, Created: time.Unix(0, 0)},
		"beyond all clocks": {Kind: Put, ID: "x", Body: body, Created: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)},
		"of an update":      {ID: "a", Body: body, Created: then},
		"of a removal":      {Kind: Remove, ID: "a", Created: then},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := c.Write(ctx, op); !errors.Is(err, schemas.ErrRequest) {
				t.Errorf("%s: %v", name, fmt.Sprint(err))
			}
		})
	}
}
