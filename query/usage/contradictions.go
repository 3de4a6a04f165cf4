package usage

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// MaxContradictions bounds the pairs that Contradictions lists.
const MaxContradictions = 100

// Contradiction is a copy of a diff that says something else than the diff which counts: it has
// another delta or another customer.
type Contradiction struct {
	Counts Diff `json:"counts"`
	Copy   Diff `json:"copy"`
}

// Contradictions are the copies that say something else than the diff that counts.
type Contradictions struct {
	// Count is of those that Pairs would list without its bound.
	Count uint64          `json:"count"`
	Pairs []Contradiction `json:"pairs"`
}

// String says how many there are.
func (c *Contradictions) String() string {
	return fmt.Sprintf("copies that say something else than the diff that counts: %d", c.Count)
}

// Contradictions looks for copies of the diffs that a request selects, of which the diff that
// counts or the copy lies between From and To. It is nil when there are none.
func (r *Reader) Contradictions(ctx context.Context, req Request) (*Contradictions, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	t, err := r.topic(ctx, req.Topic)
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		found, err := r.contradictions(ctx, t, &req)
		if !errors.Is(err, once.ErrMoved) || try == maxAsks {
			return found, err
		}
	}
}

func (r *Reader) contradictions(ctx context.Context, t *schemas.Topic, req *Request) (*Contradictions, error) {
	snap, err := r.snapshot(ctx, t, false)
	if err != nil {
		return nil, err
	}
	s := &statement{t: t, database: r.db.Database, req: req, snap: snap, params: map[string]string{}}
	f := foundPairs{copies: map[rowName]Diff{}, firsts: map[firstName]Diff{}}
	err = r.lines(ctx, s, s.contradicting(), func(row []string) error {
		c := contradicted{rowName{row[0], row[1], row[2]}, row[3], row[4]}
		f.pairs, f.copies[c.rowName] = append(f.pairs, c), Diff{}
		return nil
	})
	if err != nil || len(f.pairs) == 0 {
		return nil, err
	}
	if err := r.lines(ctx, s, s.contradictory(), func(row []string) error {
		d, err := readDiff(row[:8])
		if err == nil {
			f.found(rowName{d.ID, row[8], row[9]}, d)
		}
		return err
	}); err != nil {
		return nil, err
	}
	out := &Contradictions{}
	for _, c := range f.pairs {
		again := f.copies[c.rowName]
		out.add(req, f.first(c, &again), again)
	}
	if out.Count == 0 {
		return nil, nil
	}
	return out, nil
}

// rowName names a row of a meter: an id may have several.
type rowName struct{ id, shard, pos string }

// contradicted is a copy, and the id and shard of the diff that counts in its place.
type contradicted struct {
	rowName
	first, firstShard string
}

// firstName names diffs of one identity, id and shard.
type firstName struct{ id, shard, meter, provider, space, cause string }

func firstNameOf(id, shard string, d *Diff) firstName {
	return firstName{id, shard, d.Meter, d.Provider, d.Space, d.Cause}
}

// foundPairs are the rows of copies, and of others with their ids the earliest.
type foundPairs struct {
	pairs  []contradicted
	copies map[rowName]Diff
	firsts map[firstName]Diff
}

func (f *foundPairs) found(at rowName, d Diff) {
	if _, is := f.copies[at]; is {
		f.copies[at] = d
		return
	}
	name := firstNameOf(at.id, at.shard, &d)
	if had, is := f.firsts[name]; !is || d.Time.Before(had.Time) {
		f.firsts[name] = d
	}
}

// first returns the diff that counts in the place of a copy. Of several with its id and identity those that are not copies
// say the same. Where copies count for a time, it may be one itself.
func (f *foundPairs) first(c contradicted, again *Diff) Diff {
	if d, is := f.firsts[firstNameOf(c.first, c.firstShard, again)]; is {
		return d
	}
	for _, other := range f.pairs {
		if d := f.copies[other.rowName]; other.id == c.first && other.shard == c.firstShard && other.rowName != c.rowName && d.Cause == again.Cause {
			return d
		}
	}
	return Diff{}
}

// add takes a pair that the request asks for. A diff without an id was not found: retention or
// an erasure took it, or it is another space's.
func (c *Contradictions) add(req *Request, counts, again Diff) {
	within := func(d *Diff) bool { return !d.Time.Before(req.From) && d.Time.Before(req.To) }
	if counts.ID == "" || again.ID == "" || !within(&counts) && !within(&again) {
		return
	}
	if req.Customer != "" && counts.Customer != req.Customer && again.Customer != req.Customer {
		return
	}
	if c.Count++; len(c.Pairs) < MaxContradictions {
		c.Pairs = append(c.Pairs, Contradiction{counts, again})
	}
}

// maxContradicting bounds the pairs of ids that are looked at.
const maxContradicting = 10_000

// contradicting is the statement of the copies that say something else, each with the diff that
// counts: of those that are marked, and of rows that were not examined.
func (s *statement) contradicting() string { return s.contradictingPairs().SQL() }

func (s *statement) contradictingPairs() sql.UsageContradicting {
	pairs := sql.UsageContradicting{Unmarked: s.snap.Repeats(), Limit: maxContradicting, Unmoved: s.snap.Unmoved(false)}
	if s.snap.Marks > 0 && !s.snap.Absent {
		pairs.Marks = s.derived(schemas.DerivedRepeats)
	}
	return pairs
}

// contradictory is the statement of both diffs of each pair, where the request selects them.
func (s *statement) contradictory() string {
	return sql.UsageContradictory{
		Table: sql.QuotedTable(s.database, s.t.Name), Where: s.selected(false) + " AND " + s.snap.Held(once.Nowhere), Pairs: s.contradictingPairs(),
	}.SQL()
}
