package records

import (
	"context"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// version is the newest stored version of a document.
type version struct {
	ID, Path, Op     string
	Created, Changed int64 // unix ns
	Version, Seq     uint64
	Size             int // of the body, in bytes
	Month            schemas.Month
	Shard            schemas.Shard
}

func documentRow(r *Row) *version {
	if r == nil {
		return nil
	}
	return r.of.(*version)
}

// newestVersions calls f with the newest stored version of each document of a topic's lane, or of
// those of its documents that are listed, in the order of their ids.
func newestVersions(ctx context.Context, db *tables.DB, topic string, lane int, ids []string, f func(*version) error) error {
	c := tables.Condition{SQL: sql.InLane(lane)}
	if ids != nil {
		c = tables.Among(c, kinds.ColDocID, ids)
	}
	c.SQL = sql.NewestDocuments{Table: sql.QuotedTable(db.Database, topic), Where: c.SQL}.SQL()
	return unlessNoTable(db.Of(ctx, "document", topic, c, func(line string) error {
		var v version
		var month uint32
		var shard uint64
		err := tables.Columns(line, &v.ID, &v.Op, &v.Created, &v.Changed, &v.Version, &v.Seq, &v.Size, &month, &shard, &v.Path)
		if err != nil {
			return err
		}
		v.Month, v.Shard, v.Path = schemas.Month(month), schemas.Shard(shard), v.Path[1:]
		return f(&v)
	}))
}

func newestDocuments(ctx context.Context, db *tables.DB, t *schemas.Topic, lane int, subjects []string, f func(Row) error) error {
	return newestVersions(ctx, db, t.Name, lane, docIDs(subjects), func(v *version) error {
		return f(Row{Subject: schemas.DocSubject(t.InFronts(), document.Lane(t, v.ID), v.ID), Seq: v.Seq, Place: &schemas.FrontPlace{Month: v.Month, Shard: v.Shard, Seq: v.Seq}, of: v})
	})
}

// meantVersions is a document with versions that fulfil a condition.
type meantVersions struct {
	ID string
	// Last: its last stored version does. All: every one does.
	Last, All bool
	// Path, Created (unix ns) and Version are those of its last version.
	Path    string
	Created int64
	Version uint64
}

// meantDocuments lists in the order of the documents' ids.
func meantDocuments(ctx context.Context, db *tables.DB, t *schemas.Topic, lane int, subjects []string, c tables.Condition, after *Meant, n int) (out []Meant, err error) {
	if subjects != nil {
		c = tables.Among(c, kinds.ColDocID, docIDs(subjects))
	}
	from := ""
	if after != nil {
		from = after.of.(*meantVersions).ID
	}
	q := sql.MeantDocuments{Table: sql.QuotedTable(db.Database, t.Name), Where: sql.InLane(lane), Meant: c.SQL, Limit: n}.SQL()
	err = db.Of(ctx, "document", t.Name, c.Under(q, map[string]string{"after": from}), func(line string) error {
		var m meantVersions
		var last, all int
		if err := tables.Columns(line, &m.ID, &last, &all, &m.Created, &m.Version, &m.Path); err != nil {
			return err
		}
		m.Last, m.All, m.Path = last == 1, all == 1, m.Path[1:]
		out = append(out, Meant{Subject: schemas.DocSubject(t.InFronts(), document.Lane(t, m.ID), m.ID), of: &m})
		return nil
	})
	return out, unlessNoTable(err)
}
