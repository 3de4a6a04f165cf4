package tables

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// What is anonymised goes by every name derived from it, inside
// JSON texts, and among what was beyond the limit on attributes.
func TestClearingReachesDerivedNames(t *testing.T) {
	t.Parallel()
	db, srv, topic := openWith(t, schemas.NewTopic("derived", schemas.Field{Name: "email", Type: schemas.TypeString}, schemas.Field{Name: "people", Type: schemas.TypeString}))
	const clear = "in-clear"
	gone := map[string]string{
		"email": clear, "email#2": clear, "email.home": clear, "Email": clear, " EMAIL": clear, "\x00\tEmail": clear, ".email": clear,
		"attributes.email": clear, "attributes.Attributes.email.home": clear, "email[0]": clear, "msg": clear, "user_id.name": clear,
		"almanac_rest.email": clear, "almanac_rest#.email": clear, "attributes": `[{"email":"in-clear"}]`,
		"people": `[{"card":"in-clear"}]`, "people#2": ` [{"card":"in-clear"}]`, "user_id": clear, "email\x00x": clear,
	}
	stays := map[string]string{"email_hash": "1", "emails": "2", "x.email": "3", "people.name": "4", "cards": "5", "almanac_resting": "6"}
	rest := map[string]string{
		"almanac_rest":   `{"a":1,"email":"in-clear","big":12345678901234567890.5,"email.home":"in-clear","people":[{"card":"in-clear"}],"z":{"k":[1, "\n"]}}`,
		"almanac_rest#":  `{"Email":"in-clear"}`,
		"Almanac_rest##": `[{"email":"in-clear"}]`,
		"almanac_rest##": "{\"email\":\"in-clear\",\"\xff",
	}
	b := frame.NewBuilder(&topic)
	add := func(e schemas.Event) { b.Append(&e, noon.UnixNano(), schemas.NewID(noon.UnixNano())) }
	for _, names := range []map[string]string{gone, stays, rest} {
		for _, k := range slices.Sorted(maps.Keys(names)) {
			add(schemas.Event{Service: "s", Attrs: []schemas.Attr{schemas.String(k, names[k]), schemas.String("other", "o")}})
		}
	}
	add(schemas.Event{Message: `{"email":"in-clear"}`, Service: `{"card":"in-clear"}`, UserID: clear, Type: "t"})
	add(schemas.Event{Message: "", Service: "{no json}", Attrs: []schemas.Attr{schemas.String("people", "free text"), schemas.String("service.card", clear)}})
	_, payload := b.Encode()
	if err := db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: november, Shard: 5, Frames: framesAt(t, &topic, 1, slices.Clone(payload))}); err != nil {
		t.Fatal(err)
	}
	fields := []string{"Email", "user_id", "msg", "people.card", "service.card"}
	for range 2 { // again: nothing is left to clear
		if err := db.ClearFields(t.Context(), &topic, november, 5, fields); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := db.Conn().Query(t.Context(), "SELECT toString(tuple(*)), toString(attributes), email, people FROM "+sql.QuotedTable(srv.Database, "derived")+" ORDER BY id SETTINGS apply_patch_parts = 0")
	if err != nil {
		t.Fatal(err)
	}
	n, all := 0, ""
	for rows.Next() {
		var whole, attributes, email, people string
		if err := rows.Scan(&whole, &attributes, &email, &people); err != nil {
			t.Fatal(err)
		}
		n++
		all += attributes + people + "\n"
		if strings.Contains(whole, clear) {
			t.Errorf("still there: %s", whole)
		}
	}
	if rows.Err() != nil || n != b.Rows() {
		t.Errorf("%d rows of %d: %v", n, b.Rows(), rows.Err())
	}
	for k, v := range stays {
		if !strings.Contains(all, "'"+k+"':'"+v+"'") {
			t.Errorf("%s was cleared: %s", k, all)
		}
	}
	for _, want := range []string{`"a":1`, `"big":`, `"z":`, "free text"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is gone: %s", want, all)
		}
	}
}
