package documents

import (
	"context"
	"errors"
	"fmt"

	"github.com/almanac-events/almanac/internal/fronts"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// Load returns a document; ErrNotFound where there is none. Its body comes from DOCS
// while it is hot, else from the archive.
func (c *Collection) Load(ctx context.Context, id string) (*Document, error) {
	if err := document.CheckID(c.topic.Documents, id); err != nil {
		return nil, fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	for range tries {
		r, err := c.shown(ctx, id)
		if err != nil {
			return nil, err
		}
		d, err := c.resolve(ctx, r)
		if errors.Is(err, archive.ErrNoRow) {
			// It was changed or erased meanwhile, or the row is lost.
			if now, again := c.shown(ctx, id); again != nil || now == nil || now.Seq != r.Seq {
				err = again
				if again == nil {
					continue
				}
			}
		}
		if err == nil && d == nil {
			err = fmt.Errorf("%w: %q", ErrNotFound, id)
		}
		return d, err
	}
	return nil, fmt.Errorf("%w: %q, %d times", ErrBusy, id, tries)
}

// LoadIn is Load of a document under a path: ErrNotFound where it is under another.
func (c *Collection) LoadIn(ctx context.Context, path, id string) (*Document, error) {
	if err := document.CheckPath(path); err != nil {
		return nil, fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	d, err := c.Load(ctx, id)
	if err == nil && d.Path != path {
		return nil, fmt.Errorf("%w: %q under path %q", ErrNotFound, id, path)
	}
	return d, err
}

// maxLoad bounds the ids of LoadMany.
const maxLoad = 1000

// LoadMany returns documents aligned with their ids, nil where there is none.
func (c *Collection) LoadMany(ctx context.Context, ids []string) ([]*Document, error) {
	if len(ids) > maxLoad {
		return nil, fmt.Errorf("%w: %d ids, the limit is %d", schemas.ErrRequest, len(ids), maxLoad)
	}
	at := map[string][]int{} // by subject
	var subjects []string
	for i, id := range ids {
		if err := document.CheckID(c.topic.Documents, id); err != nil {
			return nil, fmt.Errorf("%w: %w", schemas.ErrRequest, err)
		}
		s := schemas.DocSubject(c.topic.InFronts(), document.Lane(&c.topic, id), id)
		if at[s] == nil {
			subjects = append(subjects, s)
		}
		at[s] = append(at[s], i)
	}
	out := make([]*Document, len(ids))
	err := c.w.LastOf(ctx, subjects, func(msg *streams.Message) error {
		var d *Document
		r, err := c.parse(msg)
		if err == nil {
			d, err = c.resolve(ctx, r)
		}
		if errors.Is(err, archive.ErrNoRow) || errors.Is(err, schemas.ErrRecord) {
			if d, err = c.Load(ctx, ids[at[msg.Subject][0]]); errors.Is(err, ErrNotFound) {
				err = nil
			}
		}
		for _, i := range at[msg.Subject] {
			out[i] = d
		}
		return err
	})
	return out, err
}

// shown is the document's newest record. Where what is not a record took its place, that is the newest version which
// ClickHouse has, once all that was routed is stored.
func (c *Collection) shown(ctx context.Context, id string) (*document.Record, error) {
	r, err := c.last(ctx, id)
	if replaced := (*fronts.ReplacedError)(nil); errors.As(err, &replaced) && c.cfg.Archive != nil {
		newest, failed := c.cfg.Archive.Newest(ctx, &c.topic, id, replaced.Seq)
		if failed != nil {
			return nil, fmt.Errorf("%w: %w; %w", ErrArchive, failed, err)
		}
		return newest, nil
	}
	return r, err
}

// resolve is what a record stands for: nil for none and for a removed document.
func (c *Collection) resolve(ctx context.Context, r *document.Record) (*Document, error) {
	switch {
	case r == nil || r.Removed():
		return nil, nil
	case r.Stub == nil:
		erased, err := c.erased(ctx, r)
		if err != nil || erased {
			return nil, err
		}
		return view(r), nil
	case c.cfg.Archive == nil:
		return nil, fmt.Errorf("%w: the body of %q is archived, and no ClickHouse is given", ErrArchive, r.ID)
	}
	whole, err := c.cfg.Archive.Body(ctx, &c.topic, r)
	if err != nil {
		return nil, fmt.Errorf("%w: %q: %w", ErrArchive, r.ID, err)
	}
	if erased, err := c.erased(ctx, whole); err != nil || erased {
		return nil, err
	}
	return view(whole), nil
}

// erased reports whether an erasure means a record of DOCS.
func (c *Collection) erased(ctx context.Context, r *document.Record) (bool, error) {
	if c.cfg.Archive != nil {
		yes, err := c.cfg.Archive.Erased(ctx, &c.topic, r)
		if errors.Is(err, archive.ErrNoRow) {
			err = fmt.Errorf("%w: %w", ErrArchive, err)
		}
		return yes, err
	}
	l, err := c.ledger.Of(ctx, c.topic.Name)
	if err != nil {
		return false, err
	}
	yes, ask := archive.Meant(l, r)
	for i := 0; !yes && i < len(ask); i++ {
		is, err := archive.Surely(&c.topic, &ask[i], r)
		if err != nil || is == filter.Unsure {
			return false, fmt.Errorf("%w: only ClickHouse can say whether the erasure %s, which has a filter, means %q", ErrArchive, ask[i].ID, r.ID)
		}
		yes = is == filter.Yes
	}
	return yes, nil
}
