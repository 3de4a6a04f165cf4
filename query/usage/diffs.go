package usage

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Limits of a page of diffs.
const (
	DefaultDiffs = 500
	MaxDiffs     = 10_000
)

// Diff is a diff that counts.
type Diff struct {
	Time     time.Time `json:"time"`
	Meter    string    `json:"meter"`
	Provider string    `json:"provider,omitempty"`
	Space    string    `json:"space"`
	Customer string    `json:"customer,omitempty"`
	Cause    string    `json:"cause"`
	Delta    int64     `json:"delta,string"`
	ID       string    `json:"id"`
}

// Diffs is a page of diffs, the oldest first.
type Diffs struct {
	Diffs []Diff `json:"diffs"`
	// Cursor continues after the last one; absent on the last page.
	Cursor string `json:"cursor,omitempty"`
	// Contradictions are copies that say something else; the first page has them.
	Contradictions *Contradictions `json:"contradictions,omitempty"`
}

// Diffs reads a page of the diffs between From and To which a report counts. limit is 1 to
// MaxDiffs, 0 means DefaultDiffs. cursor is of the page before, empty begins. Days of which
// retention dropped the rows are ErrCut.
func (r *Reader) Diffs(ctx context.Context, req Request, limit int, cursor string) (*Diffs, error) {
	req.GroupBy = Total
	if err := req.check(); err != nil {
		return nil, err
	}
	if limit == 0 {
		limit = DefaultDiffs
	}
	if limit < 1 || limit > MaxDiffs {
		return nil, fmt.Errorf("%w: limit is %d, it must be 1 to %d", schemas.ErrRequest, limit, MaxDiffs)
	}
	after, err := decodePlace(cursor)
	if err != nil {
		return nil, err
	}
	t, err := r.topic(ctx, req.Topic)
	if err != nil {
		return nil, err
	}
	var page *Diffs
	err = r.ask(ctx, t, &req, func(s *statement) error {
		if err := s.rowsOnly(); err != nil {
			return err
		}
		page = &Diffs{Diffs: []Diff{}}
		return r.lines(ctx, s, s.diffs(after, limit+1), func(row []string) error {
			d, err := readDiff(row)
			page.Diffs = append(page.Diffs, d)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if cursor == "" {
		if page.Contradictions, err = r.Contradictions(ctx, req); err != nil {
			return nil, err
		}
	}
	if len(page.Diffs) > limit {
		page.Diffs = page.Diffs[:limit]
		last := &page.Diffs[limit-1]
		page.Cursor = place{last.Time.UnixNano(), last.ID}.encode()
	}
	return page, nil
}

// rowsOnly makes the statement read rows alone, and refuses a range whose rows are gone.
func (s *statement) rowsOnly() error {
	s.whole, s.past, s.days, s.expect = nil, nil, nil, 0
	for i := range s.snap.shards {
		st := &s.snap.shards[i]
		if st.Gone && st.Stored.MinTs <= st.Stored.MaxTs && st.Stored.MinTs/1e6 < s.until && st.Stored.MaxTs/1e6 >= s.from {
			return fmt.Errorf("%w: %w: retention dropped the diffs of month %s; reports have them, pages do not", schemas.ErrRequest, ErrCut, st.Ref.Month)
		}
	}
	return nil
}

// diffs is the statement of a page.
func (s *statement) diffs(after place, limit int) string {
	cond := "c AND t >= {from:Int64}"
	if s.req.above != nil {
		cond = "c AND (" + s.req.above.sql() + ")"
	}
	if after.id != "" {
		s.params["ns"], s.params["id"] = strconv.FormatInt(after.ns, 10), after.id
	}
	return sql.UsageDiffs{Rows: s.rows(false), Where: cond, Unmoved: s.assertion(), After: after.id != "", Limit: limit}.SQL()
}

func readDiff(row []string) (d Diff, err error) {
	ns, err := strconv.ParseInt(row[0], 10, 64)
	if err == nil {
		d = Diff{Time: time.Unix(0, ns).UTC(), ID: row[1], Meter: row[2], Provider: row[3], Space: row[4], Customer: row[5], Cause: row[6]}
		d.Delta, err = strconv.ParseInt(row[7], 10, 64)
	}
	if err != nil {
		return d, fmt.Errorf("usage: ClickHouse's answer is %q: %w", row, err)
	}
	return d, nil
}

// place is where a page of diffs ended.
type place struct {
	ns int64
	id string
}

func (p place) encode() string {
	text, _ := json.Marshal([]string{strconv.FormatInt(p.ns, 10), p.id})
	return base64.RawURLEncoding.EncodeToString(text)
}

func decodePlace(cursor string) (p place, err error) {
	if cursor == "" {
		return p, nil
	}
	var parts []string
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(text, &parts)
	}
	if err == nil && len(parts) != 2 {
		err = fmt.Errorf("it has %d parts", len(parts))
	}
	if err == nil {
		p.ns, err = strconv.ParseInt(parts[0], 10, 64)
	}
	if err == nil {
		p.id = parts[1]
		_, err = schemas.ParseID(p.id)
	}
	if err != nil {
		return p, fmt.Errorf("%w: the cursor is not one of a page of diffs: %w", schemas.ErrRequest, err)
	}
	return p, nil
}
