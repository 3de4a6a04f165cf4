package tables

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/sql"
)

// randomFrames are frames after a position. Of each event the field n is the position of its frame,
// and user_id "gone" marks those that a filter is to leave out.
func randomFrames(rng *rand.Rand, topic *schemas.Topic, after uint64, frames, maxRows int) (out []Frame, kept map[uint64]uint64) {
	b := frame.NewBuilder(topic)
	kept = map[uint64]uint64{}
	for i := range frames {
		pos := after + 1 + uint64(i)
		rows := 1 + rng.IntN(maxRows)
		gone := rng.IntN(4) // of these many quarters
		for range rows {
			e := schemas.Event{Message: "m", UserID: "stays", Attrs: []schemas.Attr{schemas.Int64("n", int64(pos))}}
			if rng.IntN(4) < gone {
				e.UserID = "gone"
			} else {
				kept[pos]++
			}
			// Frames overlap in time, so that rows are not stored in their order.
			ts := noon.UnixNano() + rng.Int64N(1_000_000_000)
			b.Append(&e, ts, schemas.NewID(ts))
		}
		_, payload := b.Encode()
		out = append(out, Frame{Pos: pos, Rows: rows, Payload: bytes.Clone(payload)})
		b.Reset()
	}
	return out, kept
}

// The rows of each position are those of its frame, whatever frames an insert has and whatever its filter
// leaves out. An insert that has other rows than its frames' headers say stores nothing.
func TestPositions(t *testing.T) {
	t.Parallel()
	db, srv, topic := openWith(t, schemas.NewTopic("app", schemas.Field{Name: "n", Type: schemas.TypeInt64}))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	table := sql.QuotedTable(srv.Database, "app")
	keep := Condition{SQL: "user_id != {gone:String}", Params: map[string]string{"gone": "gone"}}
	head, stored := uint64(0), map[uint64]uint64{} // rows by position
	check := func(what string) {
		t.Helper()
		var groups []Group
		var wrong, parts uint64
		groups, err := db.Groups(t.Context(), schemas.ShardRef{Topic: "app", Month: november, ID: 5})
		if err != nil {
			t.Fatal(err)
		}
		got := map[uint64]uint64{}
		for _, g := range groups {
			got[g.Pos] = g.Rows
		}
		if err := db.Conn().QueryRow(t.Context(), "SELECT count() FROM "+table+" WHERE toUInt64(n) != pos").Scan(&wrong); err != nil || wrong > 0 {
			t.Errorf("%s: %d rows carry another position than their frame's (%v)", what, wrong, err)
		}
		for pos := range max(uint64(len(stored)), head) + 2 {
			if got[pos] != stored[pos] {
				t.Fatalf("%s: position %d has %d rows, its frame %d", what, pos, got[pos], stored[pos])
			}
		}
		q := "SELECT max(c) FROM (SELECT count() AS c FROM system.part_log WHERE database = '" + srv.Database + "' AND event_type = 'NewPart' AND table = 'app' GROUP BY query_id)"
		if _, err := srv.SQL().ExecContext(t.Context(), "SYSTEM FLUSH LOGS"); err == nil && srv.SQL().QueryRowContext(t.Context(), q).Scan(&parts) == nil && parts > 1 {
			t.Errorf("%s: an insert made %d parts", what, parts)
		}
	}
	for _, c := range []struct {
		name            string
		frames, maxRows int
		filtered        bool
	}{
		{"one event", 1, 1, false},
		{"one frame", 1, 3000, false},
		{"usual frames", 6, 2000, false},
		{"usual frames, some events left out", 6, 2000, true},
		{"frames of few events", 300, 3, false},
		{"frames of few events, some left out", 300, 3, true},
		{"large and small frames", 3, 5000, true},
		{"as many frames as an insert takes", MaxFrames, 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			frames, kept := randomFrames(rng, &topic, head, c.frames, c.maxRows)
			in := &Insert{Topic: &topic, Schema: 1, Month: november, Shard: 5, Head: head, Frames: frames}
			if c.filtered {
				in.Keep = keep
			}
			name, more := "a row less", 1
			if rng.IntN(2) == 0 {
				name, more = "a row more", -1
			}
			wrong := *in
			wrong.Frames, wrong.Attempt = slices.Clone(frames), 1
			wrong.Frames[rng.IntN(len(frames))].Rows += more
			if err := db.Insert(t.Context(), &wrong); !errors.Is(err, ErrRows) {
				t.Errorf("%s, %s than the headers say: %v, want it refused", c.name, name, err)
			}
			check(c.name + ", refused")
			if err := db.Insert(t.Context(), in); err != nil {
				t.Fatal(c.name, err)
			}
			for _, f := range frames {
				n := uint64(f.Rows)
				if c.filtered {
					n = kept[f.Pos]
				}
				if n > 0 {
					stored[f.Pos], head = n, f.Pos
				}
			}
			check(c.name)
		})
	}
	for name, frames := range map[string][]Frame{"none": nil, "too many": make([]Frame, MaxFrames+1)} {
		t.Run(name, func(t *testing.T) {
			if err := db.Insert(t.Context(), &Insert{Topic: &topic, Schema: 1, Month: november, Shard: 5, Head: head, Frames: frames}); !errors.Is(err, ErrRows) {
				t.Errorf("%s frames: %v, want it refused", name, err)
			}
		})
	}
}

// ClickHouse takes 128 KiB of a statement: with as many frames and fields as there may be, and room for a
// filter.
func TestStatementFits(t *testing.T) {
	var fields []schemas.Field
	for i := range schemas.MaxFields {
		fields = append(fields, schemas.Field{Name: fmt.Sprintf("%058d", i), Type: schemas.TypeString})
		fields[i].Name = "f" + fields[i].Name
	}
	topic := schemas.NewTopic("app", fields...)
	in := &Insert{Topic: &topic, Schema: 1, Month: november, Shard: 5}
	for i := range MaxFrames {
		in.Frames = append(in.Frames, Frame{Pos: 10_000_000 + uint64(i), Rows: BatchRows / MaxFrames})
	}
	if n := len(in.statement("almanac")); n > 64<<10 {
		t.Errorf("the statement has %d bytes", n)
	}
}
