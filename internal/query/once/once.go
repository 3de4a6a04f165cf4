package once

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/internal/registry"
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
	tables.DerivedShard
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
	d, err := db.Marked(ctx, s.Topic)
	if err != nil {
		return err
	}
	s.Marks, s.Absent = d.Marks, d.Absent
	for i := range s.Shards {
		sh := &s.Shards[i]
		sh.DerivedShard = d.Shards[sh.Ref]
		delete(d.Shards, sh.Ref)
	}
	for ref, st := range d.Shards { // rows of a shard that was made since, or that the registry lost
		s.Shards = append(s.Shards, Shard{Ref: ref, DerivedShard: st})
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
func (s *Snapshot) Quiet() bool {
	for i := range s.Shards {
		if sh := &s.Shards[i]; !sh.Gone && sh.Examined < sh.Stored.Head {
			return false
		}
	}
	return !s.Absent
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

// Held is the condition of the rows that a statement reads: none of shards that are gone. cut
// says that it leaves out what came since the snapshot: those rows may have repeats that are
// not named.
func (s *Snapshot) Held(cut bool) string {
	cond := []string{"1"}
	for i := range s.Shards {
		switch sh := &s.Shards[i]; {
		case sh.Gone:
			cond = append(cond, "NOT ("+In(sh.Ref)+")")
		case cut && !sh.Closed:
			cond = append(cond, "NOT ("+Above(sh.Ref, sh.Stored.Head)+")")
		}
	}
	if known := s.known(); cut && known == "" {
		cond = append(cond, "0")
	} else if cut {
		cond = append(cond, "(month, shard) IN ("+known+")")
	}
	return strings.Join(cond, " AND ")
}

// HeldIn is Held, cut, of some shards: a statement looks at no part of others, and does not read
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
	known := s.known()
	if known == "" {
		return "1"
	}
	cond := []string{"(month, shard) NOT IN (" + known + ")"}
	for i := range s.Shards {
		if sh := &s.Shards[i]; !sh.Gone && !(sh.Closed && above(sh) >= sh.Stored.Head) {
			cond = append(cond, "("+Above(sh.Ref, above(sh))+")")
		}
	}
	return strings.Join(cond, " OR ")
}

// Again is the condition of rows that do not count. cut is as in Held, and only possible when
// the snapshot is quiet.
func (s *Snapshot) Again(cut bool) string {
	var again []string
	if s.Marks > 0 && !s.Absent {
		again = append(again, "(id, shard, pos) IN (SELECT id, shard, pos FROM "+s.derived(schemas.DerivedRepeats)+")")
	}
	if !cut {
		fresh := s.New(func(sh *Shard) uint64 { return sh.Examined })
		again = append(again, "(id, shard, pos) IN (SELECT id, shard, pos FROM ("+sql.RepeatsSelect(s.Topic, s.Database, "1", fresh)+"))")
	}
	if len(again) == 0 {
		return "false"
	}
	return strings.Join(again, " OR ")
}

// Unmoved is a condition that holds while repeats are named as the snapshot found them. cut is
// as in Held: where none was named, one that was named since is a row that is left out, or of such a row.
func (s *Snapshot) Unmoved(cut bool) string {
	if s.Absent || cut && s.Marks == 0 {
		return "1"
	}
	return fmt.Sprintf("throwIf((SELECT count() FROM %s WHERE id != %s) != %d, '%s') = 0", s.derived(schemas.DerivedRepeats), sql.NoID, s.Marks, TextMoved)
}

func (s *Snapshot) derived(name string) string {
	return sql.QuotedTable(s.Database, schemas.DerivedTable(s.Topic.Name, name))
}
