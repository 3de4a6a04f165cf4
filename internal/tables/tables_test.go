package tables

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

func TestMain(m *testing.M) { embeddedtest.Main(m) }

const november = schemas.Month(202611)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func open(t *testing.T) (*DB, *embeddedtest.Servers) {
	t.Helper()
	srv := embeddedtest.Start(t, embeddedtest.WithoutNATS())
	db, err := Open(srv.HTTPDSNOf(access.UserOperator))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db, srv
}

// openWith is open with a topic's table.
func openWith(t *testing.T, topic schemas.Topic) (*DB, *embeddedtest.Servers, schemas.Topic) {
	t.Helper()
	db, srv := open(t)
	if err := db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	return db, srv, topic
}

// everyType is a topic with a field of every type.
func everyType() schemas.Topic {
	var fields []schemas.Field
	for i, typ := range schemas.FieldTypes {
		fields = append(fields, schemas.Field{Name: fmt.Sprintf("f%d", i), Type: typ})
	}
	return schemas.NewTopic("every", fields...)
}

func frameOf(t *testing.T, topic *schemas.Topic, rows int) []byte {
	t.Helper()
	b := frame.NewBuilder(topic)
	for i := range rows {
		e := schemas.Event{Message: "it's `quoted` \\ and \t tabbed", UserID: "u", Attrs: []schemas.Attr{schemas.Int64("n", int64(i)), schemas.Float64("ms", 1.5)}}
		b.Append(&e, noon.UnixNano()+int64(i), schemas.NewID(noon.UnixNano()))
	}
	_, payload := b.Encode()
	return bytes.Clone(payload)
}

// framesAt are frames at positions from first on. One that cannot be read has a row.
func framesAt(t *testing.T, topic *schemas.Topic, first uint64, payloads ...[]byte) []Frame {
	t.Helper()
	var r frame.Reader
	out := make([]Frame, len(payloads))
	for i, payload := range payloads {
		out[i] = Frame{Pos: first + uint64(i), Rows: 1, Payload: payload}
		for v := 1; v <= topic.Version; v++ {
			if r.Open(payload, topic, v) == nil {
				out[i].Rows = r.Rows()
			}
		}
	}
	return out
}

func TestInsert(t *testing.T) {
	t.Parallel()
	db, srv, topic := openWith(t, schemas.NewTopic("app", schemas.Field{Name: "n", Type: schemas.TypeInt64}))
	frame := func(rows int) []byte { return frameOf(t, &topic, rows) }
	in := &Insert{Topic: &topic, Schema: 1, Month: november, Shard: 5, Frames: framesAt(t, &topic, 1, frame(2000), frame(500), frame(1))}
	if err := db.Insert(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	head, err := db.Head(t.Context(), schemas.ShardRef{Topic: "app", Month: november, ID: 5})
	if err != nil || head != 3 {
		t.Fatalf("head %d, %v", head, err)
	}
	var parts, partitions uint64
	q := "SELECT count(), uniqExact(partition_id) FROM system.parts WHERE database = ? AND table = 'app'"
	if err := db.Conn().QueryRow(t.Context(), q, srv.Database).Scan(&parts, &partitions); err != nil || parts != 1 || partitions != 1 {
		t.Errorf("one insert made %d parts in %d partitions (%v)", parts, partitions, err)
	}
	// The same again, from the same head or with another token: the head moved.
	for attempt := range 2 {
		in.Attempt = attempt
		if err := db.Insert(t.Context(), in); !errors.Is(err, ErrHeadMoved) {
			t.Errorf("attempt %d again: %v, want the head moved", attempt, err)
		}
	}
	// Above a head that is not there, as after ClickHouse was restored from an older copy.
	ahead := &Insert{Topic: &topic, Schema: 1, Month: november, Shard: 5, Head: 4, Frames: in.Frames[:1]}
	if err := db.Insert(t.Context(), ahead); !errors.Is(err, ErrHeadMoved) {
		t.Errorf("behind position 4: %v, want the head moved", err)
	}
	st, err := db.Stored(t.Context(), schemas.ShardRef{Topic: "app", Month: november, ID: 5})
	if err != nil || st.Rows != 2501 || st.MinTs != noon.UnixNano() || st.MaxTs != noon.UnixNano()+1999 {
		t.Errorf("stored %+v, %v", st, err)
	}
	heads, err := db.Heads(t.Context(), "app")
	if err != nil || len(heads) != 1 || heads[5] != 3 {
		t.Errorf("heads %v, %v", heads, err)
	}
	var refused *Error
	whole := frame(2000)
	cut := &Insert{Topic: &topic, Schema: 1, Month: november, Shard: 6, Frames: framesAt(t, &topic, 1, whole, whole[:100])}
	if err := db.Insert(t.Context(), cut); !errors.As(err, &refused) {
		t.Errorf("a body cut short: %v, want it refused whole", err)
	}
	if head, _ := db.Head(t.Context(), schemas.ShardRef{Topic: "app", Month: november, ID: 6}); head != 0 {
		t.Errorf("a cut body stored rows up to %d", head)
	}
}

// A field that comes later: the table grows, frames of the old version still go in, and
// have what their attributes say.
func TestSchemaGrowth(t *testing.T) {
	t.Parallel()
	db, _, one := openWith(t, schemas.NewTopic("app", schemas.Field{Name: "n", Type: schemas.TypeInt64}))
	want := one
	want.Fields = append(want.Fields, schemas.Field{Name: "ms", Type: schemas.TypeFloat64}, schemas.Field{Name: "seen", Type: schemas.TypeTimestamp})
	two, err := one.Evolve(want)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := db.Ensure(t.Context(), &two); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Insert(t.Context(), &Insert{Topic: &two, Schema: 1, Month: november, Shard: 5, Frames: framesAt(t, &two, 1, frameOf(t, &one, 10))}); err != nil {
		t.Fatal(err)
	}
	if err := db.Insert(t.Context(), &Insert{Topic: &two, Schema: 2, Month: november, Shard: 5, Head: 1, Frames: framesAt(t, &two, 2, frameOf(t, &two, 10))}); err != nil {
		t.Fatal(err)
	}
	var old, grown float64
	q := fmt.Sprintf("SELECT sumIf(ms, pos = 1), sumIf(ms, pos = 2) FROM %s", sql.QuotedTable(db.Database, "app"))
	if err := db.Conn().QueryRow(t.Context(), q).Scan(&old, &grown); err != nil || old != 15 || grown != 15 {
		t.Errorf("ms is %v and %v, want 15 and 15 (%v)", old, grown, err)
	}
}

// Every field type makes a table ClickHouse accepts and a frame it reads.
func TestEveryFieldType(t *testing.T) {
	t.Parallel()
	db, _, topic := openWith(t, everyType())
	if err := db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: november, Shard: 5, Frames: framesAt(t, &topic, 1, frameOf(t, &topic, 3))}); err != nil {
		t.Fatal(err)
	}
}

func TestSelectFresh(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	topic := schemas.NewTopic("app")
	var r frame.Reader
	if err := r.Open(frameOf(t, &topic, 7), &topic, 1); err != nil {
		t.Fatal(err)
	}
	body, err := db.Select(t.Context(), &Select{
		SQL: "SELECT count(), any({p:String}) FROM " + FreshTable + " FORMAT TSV", Params: map[string]string{"p": "x') OR 1 --"},
		Fresh: [][]byte{r.Raw(), r.Raw()}, FreshStructure: topic.FrameStructure(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(body)
	if err != nil || string(text) != "14\tx\\') OR 1 --\n" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, dsn := range []string{"", "localhost:8123", "clickhouse://h:9000", "http://", "://", "nats://h"} {
		if _, err := Open(dsn); !errors.Is(err, ErrDSN) {
			t.Errorf("%q: %v, want it refused", dsn, err)
		}
	}
	if _, err := Open("ftp://user:secret@h/db"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("the refusal shows the password: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for code, c := range map[string]struct {
		text string
		want error
	}{
		"395": {"Code: 395. DB::Exception: almanac: head moved: while executing", ErrHeadMoved},
		"396": {"Code: 396. DB::Exception: almanac: head moved", nil},
		"243": {"Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space", ErrNoSpace},
		"252": {"Code: 252. DB::Exception: Too many parts", ErrBusy},
		"241": {"Code: 241. DB::Exception: Memory limit", ErrBusy},
		"236": {"Code: 236. DB::Exception: Cancelled merging parts. (ABORTED)", ErrBusy}, // by a drop of the partition
	} {
		err := refusalText(code, c.text+"\nStack trace")
		if c.want != nil && !errors.Is(err, c.want) || strings.Contains(err.Error(), "Stack") {
			t.Errorf("%s: %v, want %v", code, err, c.want)
		}
	}
	for _, text := range []string{
		"Code: 395. DB::Exception: almanac: too slow",
		"Code: 395. DB::Exception: almanac: too slow: while executing 'FUNCTION and(equals(throwIf(_CAST(0_Nullable(UInt8), 'Nullable(UInt8)'_String), 'almanac: head moved'_String), 0_...",
	} {
		if err := refusalText("395", text); !errors.Is(err, ErrTooSlow) || errors.Is(err, ErrHeadMoved) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A typing error is answered with its place, and not with all words that might have been meant.
func TestFirstLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"one line":    "one line",
		"a\n0. stack": "a",
		"failed at 1. Expected one of: a, b. (SYNTAX_ERROR)":              "failed at 1. Expected one of: a, b. (SYNTAX_ERROR)",
		"failed at 1. Expected one of: " + strings.Repeat("SELECT, ", 99): "failed at 1.",
	} {
		if got := firstLine(text); got != want {
			t.Errorf("%.60q is %q, want %q", text, got, want)
		}
	}
}

// TestRowsForAnotherTable holds that what was read for a topic does not come into the table that its name has after it was removed: not by
// an insert that follows no row, nor by one that restores rows, however long the process stood still. Without the UUID both would be stored.
func TestRowsForAnotherTable(t *testing.T) {
	t.Parallel()
	db, _, topic := openWith(t, schemas.NewTopic("app"))
	if _, err := db.UUID(t.Context(), "other"); !errors.Is(err, ErrNoTable) {
		t.Errorf("of a topic without a table: %v", err)
	}
	was, err := db.UUID(t.Context(), "app")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Conn().Exec(t.Context(), "DROP TABLE "+db.Database+".app SYNC"); err != nil {
		t.Fatal(err)
	}
	if err := db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	now, err := db.UUID(t.Context(), "app")
	if err != nil || now == was {
		t.Fatalf("the new table is %s as the old one, %v", now, err)
	}
	ref := schemas.ShardRef{Topic: "app", Month: november, ID: 5}
	frames := framesAt(t, &topic, 1, frameOf(t, &topic, 3))
	for _, c := range []struct {
		name, uuid string
		head       uint64
	}{{"the table that is gone", was, 0}, {"the one that is there", now, 1}} {
		t.Run(c.name, func(t *testing.T) {
			insert := db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: ref.Month, Shard: ref.ID, Frames: frames, UUID: c.uuid})
			restored := db.InsertMissing(t.Context(), &TableRepair{Topic: &topic, Schema: 1, Month: ref.Month, Shard: ref.ID, Hi: 1, Frames: frames, UUID: c.uuid})
			if refused := c.head == 0; errors.Is(insert, ErrReplaced) != refused || errors.Is(restored, ErrReplaced) != refused {
				t.Errorf("insert %v, restored %v", insert, restored)
			}
			if head, rows, err := db.HeadRows(t.Context(), ref); err != nil || head != c.head || rows != 3*c.head {
				t.Errorf("head %d, %d rows, %v", head, rows, err)
			}
		})
	}
	if Classify(ErrReplaced) != Moved {
		t.Errorf("class %v", Classify(ErrReplaced))
	}
}
