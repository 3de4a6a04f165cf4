package documents

import (
	"context"
	"fmt"
	"math"
	"time"

	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// Limits of a page.
const (
	DefaultLimit = 500
	MaxLimit     = 1000
)

// Selection says which documents a page has.
type Selection struct {
	// Path is the path whose documents are listed; those of paths below it with Below alone.
	Path  string
	Below bool
	// All lists the documents of every path; Path must be empty then.
	All bool
	// From and To bound the creation, or the change, From inclusive and To not; zero is open.
	From, To time.Time
	// Where selects by the columns and the promoted fields of a document's present version, in
	// the language of package query/filter; of Changed, of its last version in the range.
	Where string
	// NoBodies leaves bodies out.
	NoBodies bool
	// Limit is 1 to MaxLimit; 0 means DefaultLimit.
	Limit int
	// Cursor of the page before; empty begins.
	Cursor string
}

// Page is documents, and where the next page begins.
type Page struct {
	Documents []*Document `json:"documents"`
	// Cursor continues after the last document; absent on the last page.
	Cursor string `json:"cursor,omitempty"`
}

// List returns a page of the documents of a path, or of all, the newest created first.
func (c *Collection) List(ctx context.Context, s Selection) (*Page, error) {
	at, err := c.begin(ctx, verbList, &s)
	if err != nil {
		return nil, err
	}
	where, err := filter.ParseAt(s.Where, &c.topic, time.Unix(0, at.Asked))
	if err != nil {
		return nil, err
	}
	g := archive.Range{Path: s.Path, All: s.All, Below: s.Below, From: at.From, To: at.To, Where: where, NoBodies: s.NoBodies}
	if at.ID != "" {
		g.Before = &archive.Key{Created: at.Ns, ID: at.ID}
	}
	docs, more, err := c.cfg.Archive.List(ctx, &c.topic, g, s.Limit)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArchive, err)
	}
	page := &Page{Documents: make([]*Document, len(docs))}
	for i, r := range docs {
		if page.Documents[i] = view(r); s.NoBodies {
			page.Documents[i].Body = nil
		}
	}
	if more {
		last := docs[len(docs)-1]
		at.Ns, at.ID = last.Created, last.ID
		page.Cursor = at.String()
	}
	return page, nil
}

// Changed returns a page of the documents that changed in a range of time, in the order of
// the last change of each in it, with their present versions. One that was removed since
// comes without a body. Without bodies each comes as that change left it.
func (c *Collection) Changed(ctx context.Context, s Selection) (*Page, error) {
	at, err := c.begin(ctx, verbChanged, &s)
	if err != nil {
		return nil, err
	}
	var after *archive.Key
	if at.ID != "" {
		after = &archive.Key{Created: at.Ns, ID: at.ID}
	}
	where, err := filter.ParseAt(s.Where, &c.topic, time.Unix(0, at.Asked))
	if err != nil {
		return nil, err
	}
	g := archive.Range{Path: s.Path, All: s.All, Below: s.Below, From: at.From, To: at.To, Where: where}
	docs, more, err := c.cfg.Archive.Changed(ctx, &c.topic, g, after, s.Limit)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArchive, err)
	}
	ids := make([]string, len(docs))
	for i, r := range docs {
		ids[i] = r.ID
	}
	page := &Page{Documents: make([]*Document, len(docs))}
	if !s.NoBodies {
		if page.Documents, err = c.LoadMany(ctx, ids); err != nil {
			return nil, err
		}
	}
	for i, d := range page.Documents {
		switch {
		case s.NoBodies:
			page.Documents[i] = view(docs[i])
			page.Documents[i].Op, page.Documents[i].Body = docs[i].Op, nil
		case d == nil:
			page.Documents[i] = view(docs[i])
			page.Documents[i].Op, page.Documents[i].Body = schemas.OpRemoved, nil
		}
	}
	if more {
		last := docs[len(docs)-1]
		at.Ns, at.ID = last.Changed, last.ID
		page.Cursor = at.String()
	}
	return page, nil
}

// History returns all versions of a document, the oldest first, with those before and
// after a removal.
func (c *Collection) History(ctx context.Context, id string) ([]*Document, error) {
	if err := document.CheckID(c.topic.Documents, id); err != nil {
		return nil, fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	if c.cfg.Archive == nil {
		return nil, fmt.Errorf("%w: no ClickHouse is given", ErrArchive)
	}
	versions, err := c.cfg.Archive.History(ctx, &c.topic, id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrArchive, err)
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	out := make([]*Document, len(versions))
	for i, r := range versions {
		out[i] = view(r)
		out[i].Op = r.Op
	}
	return out, nil
}

// begin checks a selection, and reads where its page begins.
func (c *Collection) begin(ctx context.Context, verb string, s *Selection) (*cursor, error) {
	if c.cfg.Archive == nil {
		return nil, fmt.Errorf("%w: no ClickHouse is given", ErrArchive)
	}
	if err := document.CheckPath(s.Path); err != nil {
		return nil, fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	if s.All && s.Path != "" {
		return nil, fmt.Errorf("%w: all documents were asked for, and path %q", schemas.ErrRequest, s.Path)
	}
	if s.Limit == 0 {
		s.Limit = DefaultLimit
	}
	if s.Limit < 1 || s.Limit > MaxLimit {
		return nil, fmt.Errorf("%w: limit %d, it must be 1 to %d", schemas.ErrRequest, s.Limit, MaxLimit)
	}
	now, err := c.now(ctx)
	if err != nil {
		return nil, err
	}
	first := &cursor{Verb: verb, Topic: c.topic.Name, Path: s.Path, All: s.All, Below: s.Below, Where: s.Where, Asked: now, From: 0, To: math.MaxInt64}
	if !s.From.IsZero() {
		first.From = s.From.UnixNano()
	}
	if !s.To.IsZero() {
		first.To = s.To.UnixNano()
	}
	if s.Cursor == "" {
		return first, nil
	}
	at, err := parseCursor(s.Cursor)
	if err != nil {
		return nil, err
	}
	if at.Verb != verb || at.Topic != first.Topic || at.Path != s.Path || at.All != s.All || at.Below != s.Below || at.Where != s.Where || !s.From.IsZero() && at.From != first.From || !s.To.IsZero() && at.To != first.To {
		return nil, fmt.Errorf("%w: the cursor is of another list: %s of topic %q, path %q, filter %q; begin without a cursor", schemas.ErrRequest, at.Verb, at.Topic, at.Path, at.Where)
	}
	return at, nil
}
