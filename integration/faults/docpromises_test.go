package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/schemas"
)

// docPromises does what is promised of one document, of two writers, and of a list, while parts are killed.
type docPromises struct {
	t         *testing.T
	c         *documents.Collection
	documents atomic.Int64 // that it created
	rounds    [3]int
}

// createListed creates the documents of the list.
func (p *docPromises) createListed(ctx context.Context, n int) {
	p.t.Helper()
	for from := 0; from < n; from += documents.MaxBatch {
		var ops []documents.Op
		for i := from; i < min(n, from+documents.MaxBatch); i++ {
			ops = append(ops, documents.Op{Kind: documents.Create, ID: fmt.Sprint("l-", i), Path: "listed", Body: []byte(`{}`)})
		}
		if _, err := p.c.Batch(ctx, ops...); err != nil {
			p.t.Fatal(err)
		}
	}
}

// race makes calls at once, and sorts what they were told: how many won and which, and of how many nothing is known.
func race(n int, call func(i int) error, refused error) (won, unknown int, winner int, odd error) {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = call(i) })
	}
	wg.Wait()
	for i, err := range errs {
		switch {
		case err == nil:
			won, winner = won+1, i
		case errors.Is(err, refused):
		case errors.Is(err, documents.ErrExists), errors.Is(err, documents.ErrVersion), errors.Is(err, documents.ErrNotFound), errors.Is(err, schemas.ErrRequest):
			odd = err
		default:
			unknown++
		}
	}
	return won, unknown, winner, odd
}

// load loads a document, however long it takes.
func (p *docPromises) load(ctx context.Context, id string) (d *documents.Document, err error) {
	err = asked(ctx, func() (err error) {
		d, err = p.c.Load(ctx, id)
		return err
	})
	return d, err
}

// oneCreateWins creates an id eight times at once; then created stays over three updates, and changed grows.
func (p *docPromises) oneCreateWins(ctx context.Context, round int) {
	id := fmt.Sprint("c-", round)
	body := func(i int) string { return fmt.Sprintf(`{"i":%d}`, i) }
	won, unknown, winner, odd := race(8, func(i int) error {
		_, err := p.c.Create(ctx, documents.Draft{ID: id, Path: "o", Body: []byte(body(i))})
		return err
	}, documents.ErrExists)
	d, err := p.load(ctx, id)
	if errors.Is(err, documents.ErrNotFound) && won == 0 && unknown > 0 {
		return
	}
	p.documents.Add(1)
	if err != nil || odd != nil || won > 1 || won == 0 && unknown == 0 || d.Version != 1 || won == 1 && string(d.Body) != body(winner) {
		p.t.Errorf("%s: %d of 8 creates won, the last %d; of %d nothing is known; %+v, %v, %v", id, won, winner, unknown, d, err, odd)
		return
	}
	for version := uint64(2); version <= 4; version++ {
		next, mine, sure := (*documents.Document)(nil), fmt.Sprintf(`{"v":%d}`, version), true
		err := asked(ctx, func() (err error) {
			if next, err = p.c.Update(ctx, id, documents.IfVersion(version-1), []byte(mine)); errors.Is(err, documents.ErrVersion) && !sure {
				next, err = p.load(ctx, id) // it may be ours
			}
			sure = false
			return err
		})
		if err != nil || next.Version != version || string(next.Body) != mine || !next.Created.Equal(d.Created) || !next.Changed.After(d.Changed) {
			p.t.Errorf("%s: %+v, %v, after %+v", id, next, err, d)
			return
		}
		d = next
	}
	p.rounds[0]++
}

// oneUpdateWins has two updates with one version. Without a version the last one wins.
func (p *docPromises) oneUpdateWins(ctx context.Context, round int) {
	id := fmt.Sprint("u-", round)
	if err := asked(ctx, func() error {
		_, err := p.c.Create(ctx, documents.Draft{ID: id, Path: "o", Body: []byte(`{}`)})
		return err
	}); err != nil && !errors.Is(err, documents.ErrExists) {
		p.t.Errorf("%s: %v", id, err)
		return
	}
	p.documents.Add(1)
	body := func(i int) string { return fmt.Sprintf(`{"w":%d}`, i) }
	won, unknown, winner, odd := race(2, func(i int) error {
		_, err := p.c.Update(ctx, id, documents.IfVersion(1), []byte(body(i)))
		if refused := (*documents.VersionError)(nil); errors.As(err, &refused) && refused.Have != 2 {
			return fmt.Errorf("%w, told of version %d", schemas.ErrRequest, refused.Have)
		}
		return err
	}, documents.ErrVersion)
	d, err := p.load(ctx, id)
	switch {
	case err != nil || odd != nil || won > 1 || won == 0 && unknown == 0:
		p.t.Errorf("%s: %d of 2 updates won, of %d nothing is known; %+v, %v, %v", id, won, unknown, d, err, odd)
		return
	case won == 1 && (d.Version != 2 || string(d.Body) != body(winner)):
		p.t.Errorf("%s: update %d won, and %+v is there", id, winner, d)
		return
	}
	if err := asked(ctx, func() error { _, err := p.c.Update(ctx, id, documents.Always, []byte(`{"over":1}`)); return err }); err != nil {
		p.t.Errorf("%s: without a version: %v", id, err)
		return
	}
	p.rounds[1]++
}

// eachListedOnce lists the documents of a path, in pages of 500, while others are written. A cursor of another path is refused.
func (p *docPromises) eachListedOnce(ctx context.Context, n int) {
	seen, sizes := map[string]bool{}, []int{}
	for s := (documents.Selection{Path: "listed"}); ; {
		var page *documents.Page
		err := asked(ctx, func() (err error) {
			page, err = p.c.List(ctx, s)
			return err
		})
		if err != nil {
			p.t.Error(err)
			return
		}
		for _, d := range page.Documents {
			if seen[d.ID] {
				p.t.Errorf("%s is listed twice", d.ID)
			}
			seen[d.ID] = true
		}
		sizes = append(sizes, len(page.Documents))
		if s.Cursor = page.Cursor; s.Cursor == "" {
			break
		}
		if err := asked(ctx, func() error { _, err := p.c.List(ctx, documents.Selection{Path: "o", Cursor: s.Cursor}); return err }); !errors.Is(err, schemas.ErrRequest) {
			p.t.Errorf("the cursor of another path: %v", err)
		}
	}
	if len(seen) != n || fmt.Sprint(sizes) != "[500 500 203]" {
		p.t.Errorf("%d of %d documents are listed, in pages of %v", len(seen), n, sizes)
	}
	p.rounds[2]++
}
