package tables

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/privacy"
	"github.com/almanac-events/almanac/schemas/rawjson"
)

// What doctor says of rules that met nothing, and of values
// that did not fit.
func TestUses(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	topic := schemas.NewTopic("uses", schemas.Field{Name: "n", Type: schemas.TypeInt64})
	for _, f := range []string{"email", "ip", "phone", "user_id", "users.card", "card"} {
		topic.PII = append(topic.PII, schemas.Private{Field: f, Rule: schemas.PrivacyDrop})
	}
	if u, err := db.Uses(t.Context(), &topic); err != nil || u.Rows != 0 {
		t.Errorf("without a table: %+v, %v", u, err)
	}
	if err := db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	privacy, b := privacy.New(&topic, nil), frame.NewBuilder(&topic)
	for _, line := range []string{`{"email":"x","n":7}`, `{"Email":{"home":"x"},"n":"9223372036854775808"}`, `{"owner":{"phone":"1"},"users":[{"card":1}],"n":"x"}`} {
		e, err := rawjson.Keys{Topic: &topic}.Parse([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		privacy.Apply(&e)
		b.Append(&e, noon.UnixNano(), schemas.NewID(noon.UnixNano()))
	}
	_, payload := b.Encode()
	if err := db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: november, Shard: 5, Frames: framesAt(t, &topic, 1, slices.Clone(payload))}); err != nil {
		t.Fatal(err)
	}
	got, err := db.Uses(t.Context(), &topic)
	if err != nil {
		t.Fatal(err)
	}
	want := Use{Rows: 3, Matched: []int64{2, 0, 0, -1, 1, 0}, Near: [][]string{{}, {}, {"owner.phone"}, {}, {}, {}}, Misfits: []uint64{2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
