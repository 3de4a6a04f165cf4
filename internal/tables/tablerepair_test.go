package tables

import (
	"errors"
	"fmt"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// What is missing comes back once, whatever is missing and however often it is
// asked for; what is doubled goes.
func TestTableRepair(t *testing.T) {
	t.Parallel()
	db, srv, topic := openWith(t, schemas.NewTopic("app", schemas.Field{Name: "n", Type: schemas.TypeInt64}))
	const shard = schemas.Shard(5)
	own := schemas.NewID(noon.UnixNano()) // a client's own id, twice
	b := frame.NewBuilder(&topic)
	for i := range 3 {
		b.Append(&schemas.Event{Message: fmt.Sprint(i)}, noon.UnixNano()+int64(i), own)
	}
	_, repeats := b.Encode()
	frames := framesAt(t, &topic, 1, frameOf(t, &topic, 100), frameOf(t, &topic, 50), repeats)
	if err := db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: november, Shard: shard, Frames: frames}); err != nil {
		t.Fatal(err)
	}
	table := sql.QuotedTable(srv.Database, "app")
	want := hashOf(t, db, table)
	mend := &TableRepair{Topic: &topic, Schema: 1, Month: november, Shard: shard, Lo: 0, Hi: 3, Frames: frames}
	for _, damage := range []string{
		"DELETE FROM %s WHERE n < 7 SETTINGS lightweight_delete_mode = 'lightweight_update_force'",
		"DELETE FROM %s WHERE message = '1' SETTINGS lightweight_delete_mode = 'lightweight_update_force'",
		"INSERT INTO %s SELECT * FROM %[1]s WHERE n = 3 SETTINGS deduplicate_insert = 'disable'",
		"INSERT INTO %s SELECT * FROM %[1]s SETTINGS deduplicate_insert = 'disable'",
		"ALTER TABLE %s DELETE WHERE n < 90 OR message = '2' SETTINGS mutations_sync = 2",
	} {
		if err := db.Conn().Exec(t.Context(), fmt.Sprintf(damage, table)); err != nil {
			t.Fatal(damage, err)
		}
		if got := hashOf(t, db, table); got == want {
			t.Errorf("%s changed nothing", damage)
		}
		for range 2 {
			if err := db.DropCopies(t.Context(), schemas.ShardRef{Topic: "app", Month: november, ID: shard}, 0, 3); err != nil {
				t.Fatal(damage, err)
			}
			if err := db.InsertMissing(t.Context(), mend); err != nil {
				t.Fatal(damage, err)
			}
			if got := hashOf(t, db, table); got != want {
				t.Errorf("%s: mended to %s, want %s", damage, got, want)
			}
		}
	}
	if n, err := db.Copies(t.Context(), schemas.ShardRef{Topic: "app", Month: november, ID: shard}, 0, 3); err != nil || n != 0 {
		t.Errorf("%d copies, %v", n, err)
	}
	if groups, err := db.Groups(t.Context(), schemas.ShardRef{Topic: "app", Month: november, ID: shard}); err != nil || len(groups) != 3 || groups[0].Rows != 100 || groups[1].Rows != 50 || groups[2].Pos != 3 || groups[2].Rows != 3 || groups[2].Distinct != 1 {
		t.Errorf("groups %v, %v", groups, err)
	}
}

// hashOf is a table's rows, whatever their order.
func hashOf(t *testing.T, db *DB, table string) (s string) {
	t.Helper()
	if err := db.Conn().QueryRow(t.Context(), "SELECT toString((count(), groupBitXor(sipHash64(*)), sum(sipHash64(*)))) FROM "+table).Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// A shard that is written to while its copies are dropped is copied again, and not without end.
func TestDropCopiesBeginsAgain(t *testing.T) {
	t.Parallel()
	other := errors.New("another")
	for _, c := range []struct {
		name  string
		moved int
		then  error
		calls int
		want  error
	}{
		{"nothing came", 0, nil, 1, nil},
		{"rows came three times", 3, nil, 4, nil},
		{"rows come without end", 100, nil, dropTries, ErrHeadMoved},
		{"it fails", 1, other, 2, other},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls := 0
			err := whileMoved(dropTries, func() error {
				if calls++; calls <= c.moved {
					return fmt.Errorf("shard: %w", ErrHeadMoved)
				}
				return c.then
			})
			if calls != c.calls || !errors.Is(err, c.want) {
				t.Errorf("%s: %d calls, %v", c.name, calls, err)
			}
		})
	}
}

// A shard is not replaced where its rows changed since they were copied, also where there are as many: what was cleared meanwhile
// would be back.
func TestRewriteSeesUpdates(t *testing.T) {
	t.Parallel()
	db, srv, topic := openWith(t, schemas.NewTopic("app", schemas.Field{Name: "n", Type: schemas.TypeInt64}))
	const shard = schemas.Shard(5)
	ref := schemas.ShardRef{Topic: "app", Month: november, ID: shard}
	if err := db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: november, Shard: shard, Frames: framesAt(t, &topic, 1, frameOf(t, &topic, 100))}); err != nil {
		t.Fatal(err)
	}
	table := sql.QuotedTable(srv.Database, "app")
	want := hashOf(t, db, table)
	filled := func(then func() error) error {
		return db.rewrite(t.Context(), ref, func(table, beside, where string) error {
			if err := db.Conn().Exec(t.Context(), "INSERT INTO "+beside+" SELECT * FROM "+table+" WHERE "+where); err != nil {
				return err
			}
			return then()
		})
	}
	merged := func() error { return db.Conn().Exec(t.Context(), "OPTIMIZE TABLE "+table+" FINAL") }
	if err := filled(merged); err != nil || hashOf(t, db, table) != want {
		t.Errorf("parts were merged meanwhile: %v", err)
	}
	cleared := func() error { return db.ClearFields(t.Context(), &topic, november, shard, []string{"n"}) }
	if err := filled(cleared); !errors.Is(err, ErrHeadMoved) {
		t.Errorf("fields were cleared meanwhile: %v, want ErrHeadMoved", err)
	}
	var left uint64
	if err := db.Conn().QueryRow(t.Context(), "SELECT countIf(n != 0) FROM "+table).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows have the cleared field again (%v)", left, err)
	}
}
