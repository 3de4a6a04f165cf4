package tables

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// The table and the views of every kind are made, take the sinks' insert with its
// assertions, give the head, and tell the topic's kind when its descriptor is lost.
func TestTablesOfKinds(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	for _, spec := range kinds.Specs() {
		topic := schemas.NewTopicOf(spec.Kind, "things_"+string(spec.Kind), schemas.Field{Name: "region", Type: schemas.TypeLowCardinality})
		checkTable(t, db, &topic)
	}
	once := schemas.NewTopic("requests", schemas.Field{Name: "request", Type: schemas.TypeString})
	once.OnceBy, once.LaneBy = []string{schemas.ColService, "request"}, []string{"request"}
	checkTable(t, db, &once)
}

func checkTable(t *testing.T, db *DB, topic *schemas.Topic) {
	t.Helper()
	for range 2 { // the second time it is there
		if err := db.Ensure(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
		if err := db.EnsureViews(t.Context(), topic); err != nil {
			t.Fatal(err)
		}
	}
	in := &Insert{Topic: topic, Schema: 1, Month: november, Shard: 5, Frames: framesAt(t, topic, 3, frameOf(t, topic, 20))}
	if err := db.Insert(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if head, err := db.Head(t.Context(), schemas.ShardRef{Topic: topic.Name, Month: november, ID: 5}); err != nil || head != 3 {
		t.Errorf("%s: head %d, %v", topic.Name, head, err)
	}
	cols, err := db.Columns(t.Context(), topic.Name)
	if err != nil {
		t.Fatal(err)
	}
	fields, odd := schemas.FieldsOf(cols)
	for i, f := range fields {
		if of := topic.Spec().Field(f.Name); of != nil && of.Type.Wire() == f.Type.Wire() {
			fields[i].Type = of.Type
		}
	}
	if len(odd) > 0 || !reflect.DeepEqual(fields, topic.Fields) {
		t.Errorf("%s: the table gives the fields %v and %v, the topic has %v", topic.Name, fields, odd, topic.Fields)
	}
	comment, err := db.Comment(t.Context(), topic.Name)
	if said, ok := schemas.ParseTableComment(comment); err != nil || !ok || said.Kind != topic.Kind || !slices.Equal(said.OnceBy, topic.OnceBy) || said.OnceWithin != topic.OnceWithin {
		t.Errorf("%s: its comment %q gives %+v (%v)", topic.Name, comment, said, err)
	}
	for _, v := range sql.Views(topic, db.Database) {
		var n uint64
		if err := db.Conn().QueryRow(t.Context(), "SELECT count() FROM "+sql.QuotedTable(db.Database, v.Name)).Scan(&n); err != nil {
			t.Errorf("%s: view %s: %v", topic.Name, v.Name, err)
		}
	}
	if columns := topic.Once(); len(columns) > 0 {
		var same, distinct uint64
		found, where := "identity", "identity = sipHash64("+strings.Join(columns, ", ")+")"
		if by := topic.Spec().FoundBy; len(by) > 0 {
			found, where = strings.Join(by, ", "), "1"
		}
		q := fmt.Sprintf("SELECT uniqExact(%s), uniqExact(%s) FROM %s WHERE %s", found, strings.Join(columns, ", "), sql.QuotedTable(db.Database, topic.Name), where)
		if err := db.Conn().QueryRow(t.Context(), q).Scan(&same, &distinct); err != nil || same == 0 || same != distinct {
			t.Errorf("%s: %d identities of %d different rows, %v", topic.Name, same, distinct, err)
		}
	}
}
