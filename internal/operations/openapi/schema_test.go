package openapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/almanac-events/almanac/internal/operations"
)

type inner struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

type outer struct {
	ID    string    `json:"id"`
	At    time.Time `json:"at"`
	Gone  time.Time `json:"gone,omitzero"`
	Large int64     `json:"large,string"`
	Raw   json.RawMessage
	Few   []inner           `json:"few"`
	By    map[string]uint64 `json:"by,omitempty"`
	When  *time.Time        `json:"when"`
	Own   ownJSON           `json:"own"`
	Not   string            `json:"-"`
	inner
	hidden int
	Count  string `json:"count"` // before that of inner
}

type ownJSON struct{}

func (ownJSON) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

type endless struct{ Again []endless }

// A schema is what encoding/json writes, with what is said of a member.
func TestSchemas(t *testing.T) {
	t.Parallel()
	_ = outer{}.hidden
	types := &Types{
		Named:   map[string]any{"Outer": outer{}, "Few": inner{}},
		Known:   map[reflect.Type]Schema{reflect.TypeFor[ownJSON](): {Type: "integer"}},
		Members: map[string]Schema{"Few.name": {Enum: []string{"a", "b"}}},
	}
	op := operations.Operation{Method: "GET", Path: "/x", Summary: "X", Answers: []operations.Answer{{Code: 200, Type: "Outer"}}, Foreign: true}
	d, err := Make(Info{}, []*operations.Operation{&op}, types)
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(d.Components)
	if err != nil {
		t.Fatal(err)
	}
	want := `schemas:
    Few:
        type: object
        required: [name, count]
        properties:
            name:
                type: string
                enum: [a, b]
            count:
                type: integer
        additionalProperties: false
    Outer:
        type: object
        required: [id, at, large, Raw, few, when, own, name, count]
        properties:
            id:
                type: string
            at:
                type: string
                format: date-time
            gone:
                type: string
                format: date-time
            large:
                type: string
                pattern: ^-?[0-9]+$
            Raw: {}
            few:
                type: array
                items:
                    $ref: '#/components/schemas/Few'
            by:
                type: object
                additionalProperties:
                    type: integer
            when:
                type: string
                format: date-time
                nullable: true
            own:
                type: integer
            name:
                type: string
            count:
                type: string
        additionalProperties: false
`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Error(diff)
	}
	for why, types := range map[string]*Types{
		"writes its own JSON":   {Named: map[string]any{"Outer": outer{}}},
		"is within itself":      {Named: map[string]any{"Outer": struct{ A struct{ B endless } }{}}},
		"has the member":        {Named: map[string]any{"Outer": inner{}}, Members: map[string]Schema{"Outer.nome": {}}},
		"no type is named":      {Named: map[string]any{"Inner": inner{}}},
		"chan int has no schem": {Named: map[string]any{"Outer": struct{ C chan int }{}}},
	} {
		if _, err := Make(Info{}, []*operations.Operation{&op}, types); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
