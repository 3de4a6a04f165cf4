package documents

import (
	"context"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/almanac-events/almanac/internal/fanout"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Range selects documents of a path by their creation, from inclusive and to not (unix ns).
type Range struct {
	Path string
	// All selects documents of every path; Path is empty then.
	All bool
	// Below selects those of paths below Path too.
	Below    bool
	From, To int64
	// Before, when set, is the last document of the page before.
	Before *Key
	// Where selects by the columns of a document's newest version; nil: all.
	Where *filter.Expr
	// NoBodies leaves out what only ClickHouse has of a body.
	NoBodies bool
}

// life is one life of an id under a path.
type life struct {
	Key
	path string
}

func lifeOf(r *document.Record) life { return life{keyOf(r), r.Path} }

// Key is where a document stands in a list.
type Key struct {
	Created int64
	ID      string
}

func (k Key) before(o Key) bool {
	return k.Created < o.Created || k.Created == o.Created && k.ID < o.ID
}

// newer reports whether a record of a document is newer than another. Versions count within
// one life of an id. Sequences of DOCS count over all of them, also where the clock of
// a writer does not.
func newer(a, b *document.Record) bool { return a.RowSeq() > b.RowSeq() }

func keyOf(r *document.Record) Key { return Key{r.Created, r.ID} }

func (g *Range) has(r *document.Record) bool {
	return g.under(r.Path) && r.Created >= g.From && r.Created < g.To && (g.Before == nil || keyOf(r).before(*g.Before))
}

// under reports whether the range has documents of a path.
func (g *Range) under(path string) bool {
	return g.All || path == g.Path || g.Below && (g.Path == "" || strings.HasPrefix(path, g.Path+"/"))
}

// paths is the condition of what is under the range's paths, "1" for all; its parameters are added to params.
func (g *Range) paths(params map[string]string) string {
	if g.All || g.Below && g.Path == "" {
		return "1"
	}
	params["path"] = g.Path
	if !g.Below {
		return "path = {path:String}"
	}
	params["below"] = g.Path + "/"
	return "(path = {path:String} OR startsWith(path, {below:String}))"
}

// List returns up to limit documents of a range, the newest created first, and whether
// there are more.
func (r *Reader) List(ctx context.Context, t *schemas.Topic, g Range, limit int) (docs []*document.Record, more bool, err error) {
	k, err := r.knows(ctx, t)
	if err != nil {
		return nil, false, err
	}
	newest, hidden, first, end, err := r.both(ctx, t, k, g, limit+1)
	if err != nil {
		return nil, false, err
	}
	for _, rec := range newest {
		if g.has(rec) && !rec.Removed() && !hidden[rec] {
			docs = append(docs, rec)
		}
	}
	if docs, err = r.matching(ctx, t, g.Where, docs); err != nil {
		return nil, false, err
	}
	stored, err := r.keys(ctx, t, g, limit+1, newest, first, end)
	if err != nil {
		return nil, false, err
	}
	docs = append(docs, stored...)
	sortBy(docs, func(a, b *document.Record) bool { return keyOf(b).before(keyOf(a)) })
	if more = len(docs) > limit; more {
		docs = docs[:limit]
	}
	if g.NoBodies {
		return docs, more, nil
	}
	return docs, more, r.fill(ctx, t, docs)
}

// both reads, side by side, what DOCS has that is not archived, by id, with those that an
// erasure means; and the first n documents that ClickHouse has. The snapshot comes before
// both: what it knows as stored ClickHouse gives, and the rest DOCS has. A version that left
// DOCS meanwhile is a stub there, and then ClickHouse is asked again: first is nil. A removal
// may have left nothing there, which alive sees. end is that of DOCS before it was read.
func (r *Reader) both(ctx context.Context, t *schemas.Topic, k *known, g Range, n int) (newest map[string]*document.Record, hidden map[*document.Record]bool, first []*document.Record, end uint64, err error) {
	newest, hidden = map[string]*document.Record{}, map[*document.Record]bool{}
	upTo, docs := k.upTo, unarchived{}
	both, bctx := fanout.WithContext(ctx)
	both.Go(func() (err error) {
		if upTo == nil {
			if upTo, err = k.snapshot.UpTo(bctx, r.js); err != nil {
				return err
			}
		}
		docs, err = r.fresh(bctx, t, upTo, k.empty, func(rec *document.Record, erased bool) {
			hidden[rec] = erased
			if was := newest[rec.ID]; was == nil || newer(rec, was) {
				newest[rec.ID] = rec
			}
		})
		return err
	})
	both.Go(func() (err error) {
		first, err = r.page(bctx, t, &g, n, !g.NoBodies)
		return err
	})
	if err := both.Wait(); err != nil {
		return nil, nil, nil, 0, err
	}
	r.remember(t, k, upTo, docs.empty, len(newest))
	if docs.left {
		first = nil
	} else if first == nil {
		first = []*document.Record{}
	}
	return newest, hidden, first, docs.end, nil
}

// keys reads up to n documents of a range that ClickHouse has, and leaves out those that
// newest has a newer version of, and those that live no more. Their bodies may be missing. first, when it is not nil, are the
// first n that ClickHouse gave.
func (r *Reader) keys(ctx context.Context, t *schemas.Topic, g Range, n int, newest map[string]*document.Record, first []*document.Record, end uint64) (out []*document.Record, err error) {
	for {
		ask, found := n, first
		if found == nil {
			ask = n - len(out) + min(len(newest), n)
			if found, err = r.page(ctx, t, &g, ask, len(newest) <= maxNewest && !g.NoBodies); err != nil {
				return nil, err
			}
		}
		first = nil
		alive, err := r.alive(ctx, t, found, end)
		if err != nil {
			return nil, err
		}
		for _, rec := range found {
			if was := newest[rec.ID]; (was == nil || !newer(was, rec) && !g.has(was)) && alive[lifeOf(rec)] {
				out = append(out, rec)
			}
		}
		if len(found) < ask || len(out) >= n {
			return out, nil
		}
		last := keyOf(found[len(found)-1])
		g.Before = &last
	}
}

// within is page by one statement.
func (r *Reader) within(ctx context.Context, t *schemas.Topic, g *Range, n int, bodies bool) ([]*document.Record, error) {
	params, order := map[string]string{}, ""
	where := []string{g.paths(params)}
	if !g.All && !g.Below {
		order = "path DESC, " // it is the beginning of the table's order
	}
	if g.From > math.MinInt64 {
		where = append(where, "created >= "+nanos(g.From))
	}
	if g.To < math.MaxInt64 {
		where = append(where, "created < "+nanos(g.To))
	}
	if g.Before != nil {
		where = append(where, fmt.Sprintf("(created, doc_id) < (%s, {id:String})", nanos(g.Before.Created)))
		params["id"] = g.Before.ID
	}
	keep, err := r.keep(ctx, t, params)
	if err != nil {
		return nil, err
	}
	meant, more := g.Where.SQL()
	maps.Copy(params, more)
	name := sql.QuotedTable(r.db.Database, t.Name)
	columns, names := keyColumns, keyNames
	if bodies {
		columns = "path, created, doc_id, version, op, seq"
		names = columns // plain, no aliases: the outer SELECT reads the rest, of the chosen rows alone
	} else {
		columns, names = columns+", `by`", names+", `by`"
	}
	// An id that was used again may have the time of creation of its life before: the version with the highest sequence is the newest.
	page := fmt.Sprintf("SELECT %s FROM (SELECT %s, (%s) AND (%s) AS kept FROM %s WHERE %s ORDER BY %screated DESC, doc_id DESC, seq DESC LIMIT 1 BY created, doc_id) WHERE op != '%s' AND kept LIMIT %d",
		names, columns, keep, meant, name, strings.Join(where, " AND "), order, schemas.OpRemoved, n)
	if bodies {
		// The range again: it keeps parts from being looked at.
		page = fmt.Sprintf("SELECT %s FROM %s WHERE %s AND (path, created, doc_id, version, seq) IN (SELECT path, created, doc_id, version, seq FROM (%s)) ORDER BY created DESC, doc_id DESC",
			pageColumns, name, strings.Join(where, " AND "), page)
	}
	// A promoted field may have the name of a column of the answer: conditions mean the field.
	return r.selected(ctx, t, page+" SETTINGS prefer_column_name_to_alias = 1", params)
}

// alive says which of the documents that ClickHouse gave live: DOCS has a record or a stub of
// each that does, until it is removed. The rows alone do not tell. The one that ended a life may
// have come after ClickHouse was read, and its record have left DOCS before DOCS was; it may be
// lost until it is repaired; an erasure may have taken it. DOCS is read as it was at an end that
// the list knows, or later: what is removed after that was there when the list began.
func (r *Reader) alive(ctx context.Context, t *schemas.Topic, docs []*document.Record, end uint64) (map[life]bool, error) {
	out := map[life]bool{}
	if len(docs) == 0 {
		return out, nil
	}
	subjects := make([]string, 0, len(docs))
	asked := map[string]bool{}
	for _, d := range docs {
		if s := schemas.DocSubject(t.InFronts(), document.Lane(t, d.ID), d.ID); !asked[s] {
			asked[s], subjects = true, append(subjects, s)
		}
	}
	strange := map[string]bool{}
	err := streams.LatestAsOf(ctx, r.js, schemas.StreamDocs, subjects, end, func(m *streams.Message) error {
		if last := parse(m); last == nil {
			strange[m.Subject] = true
		} else if !last.Removed() {
			out[lifeOf(last)] = true
		}
		return nil
	})
	for subject := range strange {
		if err != nil {
			break
		}
		var newest *document.Record
		replaced := false
		err = streams.Gather(ctx, r.js, schemas.StreamDocs, subject, 1, nil, func(m *streams.Message) (bool, error) {
			if last := parse(m); last != nil {
				newest, replaced = last, false
			} else if schemas.Replaces(m.Header) {
				newest, replaced = nil, true
			}
			return true, nil
		})
		for _, d := range docs {
			switch {
			case schemas.DocSubject(t.InFronts(), document.Lane(t, d.ID), d.ID) != subject:
			case newest != nil && !newest.Removed():
				out[lifeOf(newest)] = true
			case newest == nil && replaced: // ClickHouse alone can tell
				out[lifeOf(d)] = true
			}
		}
	}
	return out, err
}

// fill reads the bodies of archived documents.
func (r *Reader) fill(ctx context.Context, t *schemas.Topic, docs []*document.Record) error {
	at := map[uint64]*document.Record{} // by sequence
	var keys []string
	shards := map[uint64]bool{}
	for _, d := range docs {
		if d.Stub != nil && d.Body == nil { // an empty one was cleared
			at[d.RowSeq()] = d
			// Path and id were checked when they were stored: no character of theirs is to be quoted.
			keys = append(keys, fmt.Sprintf("('%s', %s, '%s', %d, %d)", d.Path, nanos(d.Created), d.ID, d.Version, d.RowSeq()))
			shards[uint64(d.Stub.Shard)] = true
		}
	}
	if len(keys) == 0 {
		return nil
	}
	in := make([]string, 0, len(shards))
	for s := range shards {
		in = append(in, fmt.Sprint(s))
	}
	found, err := r.rows(ctx, t, false, fmt.Sprintf("shard IN (%s) AND (path, created, doc_id, version, seq) IN (%s)", strings.Join(in, ","), strings.Join(keys, ",")), "", nil)
	if err != nil {
		return err
	}
	for _, rec := range found {
		if d := at[rec.RowSeq()]; d != nil {
			*d = *rec
			delete(at, rec.Seq)
		}
	}
	for _, d := range at {
		return fmt.Errorf("documents of topic %q: %q was listed and is no longer stored: list again", t.Name, d.ID)
	}
	return nil
}
