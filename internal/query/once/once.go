package once

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// ErrMoved: what is derived changed between two statements. It is asked again.
var ErrMoved = errors.New("what is derived moved")

// TextMoved is the text of assertions whose failure is ErrMoved.
const TextMoved = "almanac: what is derived moved"

// Snapshot is how far a topic's tables were before the statement that asks them.
type Snapshot struct {
	Topic    *schemas.Topic
	Database string
	Shards   []Shard
	// Marks counts the rows of the table of repeats; Absent: it was not made yet.
	Marks  uint64
	Absent bool
}

// Shard is what a shard's tables hold.
type Shard struct {
	derived.Progress
	Ref schemas.ShardRef
	// Entry is the registry's, empty when it does not have one.
	Entry registry.Shard
	// Gone: retention drops its rows, or did. Closed: none will come any more.
	Gone, Closed bool
}

// Begin reads which shards a topic has. Fill must follow.
func Begin(ctx context.Context, reg *registry.Registry, db *tables.DB, t *schemas.Topic) (*Snapshot, error) {
	entries, err := reg.Shards(ctx, t.Name, 0)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Topic: t, Database: db.Database}
	for i := range entries {
		e := &entries[i]
		s.Shards = append(s.Shards, Shard{Ref: e.Ref(), Entry: *e, Gone: e.Gone(), Closed: e.Status == registry.Closed})
	}
	return s, nil
}

// Fill reads how far the tables are, but for the list of series (Listed).
func (s *Snapshot) Fill(ctx context.Context, db *tables.DB) error {
	d, err := derived.Of(db).Marked(ctx, s.Topic)
	if err != nil {
		return err
	}
	s.Marks, s.Absent = d.Marks, d.Absent
	for i := range s.Shards {
		sh := &s.Shards[i]
		sh.Progress = d.Shards[sh.Ref]
		delete(d.Shards, sh.Ref)
	}
	for ref, st := range d.Shards { // rows of a shard that was made since, or that the registry lost
		s.Shards = append(s.Shards, Shard{Ref: ref, Progress: st})
	}
	return nil
}

// Read is Begin and Fill.
func Read(ctx context.Context, reg *registry.Registry, db *tables.DB, t *schemas.Topic) (*Snapshot, error) {
	s, err := Begin(ctx, reg, db, t)
	if err != nil {
		return nil, err
	}
	return s, s.Fill(ctx, db)
}

// Listed enters up to where the series of each shard are listed.
func (s *Snapshot) Listed(at map[schemas.ShardRef]uint64) {
	for i := range s.Shards {
		s.Shards[i].Series = at[s.Shards[i].Ref]
	}
}

// Quiet reports whether every row was examined: marks are then all the repeats there are.
func (s *Snapshot) Quiet() bool { return !s.Absent && len(s.Open()) == 0 }

// Open are the lanes with rows that were not examined. In the others marks are all the repeats there are.
func (s *Snapshot) Open() map[int]bool {
	lanes := map[int]bool{}
	for i := range s.Shards {
		if sh := &s.Shards[i]; !sh.Gone && sh.Examined < sh.Stored.Head {
			lanes[sh.Ref.ID.Lane()] = true
		}
	}
	return lanes
}

// In is the condition of a shard's rows.
func In(ref schemas.ShardRef) string {
	return fmt.Sprintf("month = %d AND shard = %d", uint32(ref.Month), uint64(ref.ID))
}

// Above is the condition of a shard's rows above a position.
func Above(ref schemas.ShardRef, pos uint64) string {
	return fmt.Sprintf("%s AND pos > %d", In(ref), pos)
}

// known lists the snapshot's shards; "" without one.
func (s *Snapshot) known() string {
	refs := make([]string, len(s.Shards))
	for i := range s.Shards {
		refs[i] = fmt.Sprintf("(%d,%d)", uint32(s.Shards[i].Ref.Month), uint64(s.Shards[i].Ref.ID))
	}
	return strings.Join(refs, ",")
}

// Cut says in which lanes a statement leaves out the rows that came since the snapshot. They may have repeats
// that are not named.
type Cut int

const (
	// Nowhere leaves out none.
	Nowhere Cut = iota
	// Examined leaves them out in lanes of which every row was examined. In the others Again finds repeats.
	Examined
	// Everywhere leaves out all.
	Everywhere
)

// Held is the condition of the rows that a statement reads: none of shards that are gone.
func (s *Snapshot) Held(cut Cut) string {
	if cut == Nowhere {
		return s.held(func(int) bool { return false }, "1")
	}
	open := s.Open()
	if cut == Everywhere {
		clear(open)
	}
	var in []string
	if known := s.known(); known != "" {
		in = append(in, "(month, shard) IN ("+known+")")
	}
	if len(open) > 0 { // also what is in shards that were made since
		in = append(in, sql.InLanes(slices.Collect(maps.Keys(open))...))
	}
	if len(in) == 0 {
		in = append(in, "0")
	}
	return s.held(func(lane int) bool { return !open[lane] }, "("+strings.Join(in, " OR ")+")")
}

// held is the condition of rows of shards that are not gone, which fulfil another condition. cut says of which lanes rows
// above the heads are left out.
func (s *Snapshot) held(cut func(lane int) bool, in string) string {
	cond := []string{in}
	for i := range s.Shards {
		switch sh := &s.Shards[i]; {
		case sh.Gone:
			cond = append(cond, "NOT ("+In(sh.Ref)+")")
		case !sh.Closed && cut(sh.Ref.ID.Lane()):
			cond = append(cond, "NOT ("+Above(sh.Ref, sh.Stored.Head)+")")
		}
	}
	return strings.Join(cond, " AND ")
}

// HeldIn is Held, cut everywhere, of some shards: a statement looks at no part of others, and does not read
// the columns that say where a row is.
func (s *Snapshot) HeldIn(in map[schemas.ShardRef]bool) string {
	var ids, cond []string
	for i := range s.Shards {
		sh := &s.Shards[i]
		if !in[sh.Ref] || sh.Gone {
			continue
		}
		id := sql.QuoteText(schemas.PartitionID(sh.Ref.Month, sh.Ref.ID))
		ids = append(ids, id)
		if !sh.Closed {
			cond = append(cond, fmt.Sprintf(" AND NOT (_partition_id = %s AND pos > %d)", id, sh.Stored.Head))
		}
	}
	if len(ids) == 0 {
		return "0"
	}
	return "_partition_id IN (" + strings.Join(ids, ", ") + ")" + strings.Join(cond, "")
}

// New is the condition of rows above a position of each shard, and of those of shards that the
// snapshot does not know.
func (s *Snapshot) New(above func(*Shard) uint64) string {
	return s.above(func(*Shard) bool { return true }, above)
}

// above is New without the rows above a position of some of the shards.
func (s *Snapshot) above(of func(*Shard) bool, above func(*Shard) uint64) string {
	known := s.known()
	if known == "" {
		return "1"
	}
	cond := []string{"(month, shard) NOT IN (" + known + ")"}
	for i := range s.Shards {
		if sh := &s.Shards[i]; of(sh) && !sh.Gone && !(sh.Closed && above(sh) >= sh.Stored.Head) {
			cond = append(cond, "("+Above(sh.Ref, above(sh))+")")
		}
	}
	return strings.Join(cond, " OR ")
}

// Repeats selects the repeats that rows are or make which were not examined, as rows of the table of repeats: "" when there are
// none. It looks at the lanes of such rows alone.
func (s *Snapshot) Repeats() string {
	open := s.Open()
	if len(open) == 0 {
		return ""
	}
	fresh := s.above(func(sh *Shard) bool { return open[sh.Ref.ID.Lane()] }, func(sh *Shard) uint64 { return sh.Examined })
	return sql.RepeatsSelect(s.Topic, s.Database, sql.InLanes(slices.Collect(maps.Keys(open))...), fresh)
}

// Again is the condition of rows that do not count, of those that are Held(Examined).
func (s *Snapshot) Again() string {
	var again []string
	if s.Marks > 0 && !s.Absent {
		again = append(again, "(id, shard, pos) IN (SELECT id, shard, pos FROM "+s.derived(schemas.DerivedRepeats)+")")
	}
	if fresh := s.Repeats(); fresh != "" {
		again = append(again, "(id, shard, pos) IN (SELECT id, shard, pos FROM ("+fresh+"))")
	}
	if len(again) == 0 {
		return "false"
	}
	return strings.Join(again, " OR ")
}

// Unmoved is a condition that holds while repeats are named as the snapshot found them. cut says that the statement
// reads no row that came since: where none was named, one that was named since is a row that is left out, or of such a row.
func (s *Snapshot) Unmoved(cut bool) string {
	if s.Absent || cut && s.Marks == 0 {
		return "1"
	}
	return fmt.Sprintf("throwIf((SELECT count() FROM %s WHERE id != %s) != %d, '%s') = 0", s.derived(schemas.DerivedRepeats), sql.NoID, s.Marks, TextMoved)
}

func (s *Snapshot) derived(name string) string {
	return sql.QuotedTable(s.Database, schemas.DerivedTable(s.Topic.Name, name))
}
