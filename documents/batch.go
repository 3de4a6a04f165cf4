package documents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

const (
	// MaxBatch bounds the changes of a batch; one under a lock counts twice.
	MaxBatch = fronts.MaxBatch
	// MaxBatchBytes bounds the bodies of a batch.
	MaxBatchBytes = 8 << 20
)

// Batch carries out changes of different documents, all or none, and returns the version
// that each made. *BatchError names the changes for which nothing was written.
func (c *Collection) Batch(ctx context.Context, ops ...Op) ([]*Document, error) {
	if len(ops) == 0 || len(ops) > MaxBatch {
		return nil, fmt.Errorf("%w: a batch of %d changes, it must have 1 to %d", schemas.ErrRequest, len(ops), MaxBatch)
	}
	at, messages, bytes := map[string]int{}, 0, 0
	for i, op := range ops {
		if op.ID != "" {
			if first, twice := at[op.ID]; twice {
				return nil, fmt.Errorf("%w: changes %d and %d of the batch are both of document %q; a batch changes each document once", schemas.ErrRequest, first+1, i+1, op.ID)
			}
			at[op.ID] = i
		}
		if messages++; op.Lock != 0 {
			messages++
		}
		bytes += len(op.Body)
	}
	switch {
	case messages > MaxBatch:
		return nil, fmt.Errorf("%w: the batch counts %d changes, since one under a lock counts twice; the limit is %d", schemas.ErrRequest, messages, MaxBatch)
	case bytes > MaxBatchBytes:
		return nil, fmt.Errorf("%w: the bodies of the batch have %d bytes, the limit is %d", schemas.ErrRequest, bytes, MaxBatchBytes)
	}
	return c.write(ctx, slices.Clone(ops))
}

// write judges and writes changes of different documents, all or none, until it is known
// what became of them. A refusal by what is there is a *BatchError.
func (c *Collection) write(ctx context.Context, ops []Op) ([]*Document, error) {
	if err := c.checkAll(ops); err != nil {
		return nil, err
	}
	if err := c.removed.Check(ctx); err != nil {
		return nil, err
	}
	generated, admitted, in := generatedOf(ops), 0, time.Time{}
	created := allCreate(ops)
	for try := range tries {
		c.generate(ops, generated)
		// A create expects that its id is free, so it needs no look unless ids were taken of late. Another change
		// expects what is remembered. What either refuses is decided by a look.
		last, look := make([]*document.Record, len(ops)), true
		switch {
		case try > 0:
		case created:
			look = c.taken.Load()
		case c.w.Alone():
			if seen, known := c.seen.get(c.session(), ops, time.Now()); known {
				last, look = seen, false
			}
		}
		if look {
			var err error
			if last, err = c.lastOf(ctx, ops); err != nil {
				return nil, err
			}
			if created {
				c.taken.Store(slices.ContainsFunc(last, func(r *document.Record) bool { return r != nil }))
			}
		}
		if slices.ContainsFunc(generated, func(i int) bool { return last[i] != nil }) {
			continue // the chance of it grows with the documents there are
		}
		versions, creates, err := c.validateAll(ctx, last, ops)
		if refused := (*BatchError)(nil); !look && errors.As(err, &refused) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if creates > admitted {
			at, err := c.admit(ctx, creates-admitted)
			if !look && errors.Is(err, ErrFull) {
				continue // an id that is taken exists, also where there is no room
			}
			if err != nil {
				return nil, err
			}
			admitted, in = creates, at
		}
		out, err := c.store(ctx, ops, last, versions)
		if !look && errors.Is(err, ErrFull) {
			c.giveBack(admitted, in)
			admitted = 0
			continue
		}
		if err == nil {
			// Free, unless the write stood still: what it left is of no topic then.
			err = c.removed.Check(ctx)
		}
		if !errors.Is(err, fronts.ErrConflict) {
			return out, err
		}
		if !look { // some of the ids may be taken, or another write came first
			c.giveBack(admitted, in)
			admitted = 0
			c.seen.refused(ops, last, created)
		}
	}
	if len(generated) == len(ops) {
		return nil, fmt.Errorf("%w: %d generated ids in a row were taken; declare a topic with longer ids", ErrFull, tries)
	}
	return nil, fmt.Errorf("%w: %q, %d times", ErrBusy, ops[0].ID, tries)
}

// checkAll checks each change alone.
func (c *Collection) checkAll(ops []Op) error {
	for i := range ops {
		if err := c.check(&ops[i]); err != nil {
			if len(ops) > 1 {
				err = fmt.Errorf("change %d of the batch, of %q: %w", i+1, ops[i].ID, err)
			}
			return err
		}
	}
	return nil
}

// allCreate reports whether each change creates a document, and goes by no lock.
func allCreate(ops []Op) bool {
	return !slices.ContainsFunc(ops, func(op Op) bool { return op.Kind != Create || op.Lock != 0 })
}

// generatedOf lists the creates without an id.
func generatedOf(ops []Op) (at []int) {
	for i := range ops {
		if ops[i].ID == "" {
			at = append(at, i)
		}
	}
	return at
}

// generate gives the changes at some places ids of their own.
func (c *Collection) generate(ops []Op, at []int) {
	taken := map[string]bool{}
	for i := range ops {
		taken[ops[i].ID] = true
	}
	for _, i := range at {
		for ops[i].ID = ""; taken[ops[i].ID] || ops[i].ID == ""; {
			ops[i].ID = document.NewID(c.topic.Documents)
		}
		taken[ops[i].ID] = true
	}
}

// lastOf returns the record of each change's document, nil without one.
func (c *Collection) lastOf(ctx context.Context, ops []Op) ([]*document.Record, error) {
	out := make([]*document.Record, len(ops))
	if len(ops) == 1 {
		var err error
		out[0], err = c.last(ctx, ops[0].ID)
		return out, err
	}
	at, subjects := make(map[string]int, len(ops)), make([]string, len(ops))
	var strange []int
	for i := range ops {
		subjects[i] = schemas.DocSubject(c.topic.InFronts(), document.Lane(&c.topic, ops[i].ID), ops[i].ID)
		at[subjects[i]] = i
	}
	err := c.w.LastOf(ctx, subjects, func(msg *streams.Message) (err error) {
		if out[at[msg.Subject]], err = c.parse(msg); errors.Is(err, schemas.ErrRecord) {
			strange, err = append(strange, at[msg.Subject]), nil
		}
		return err
	})
	for _, i := range strange {
		if err == nil {
			out[i], err = c.last(ctx, ops[i].ID)
		}
	}
	return out, err
}

// validateAll decides what version each change makes, and how many of them create a document,
// or names all that are refused.
func (c *Collection) validateAll(ctx context.Context, last []*document.Record, ops []Op) (out []*document.Record, creates int, err error) {
	now, err := c.now(ctx)
	if err != nil {
		return nil, 0, err
	}
	refused := &BatchError{}
	out = make([]*document.Record, len(ops))
	for i := range ops {
		r, err := validate(&c.topic, last[i], &ops[i], c.cfg.By, now)
		if err != nil {
			refused.Members = append(refused.Members, MemberError{i, ops[i].ID, err})
			continue
		}
		if out[i] = r; r.Op == schemas.OpStored {
			creates++
		}
	}
	if len(refused.Members) > 0 {
		return nil, 0, refused
	}
	return out, creates, nil
}

// store writes the versions with the locks that they go by. fronts.ErrConflict: something
// changed meanwhile, and nothing was written.
func (c *Collection) store(ctx context.Context, ops []Op, last, versions []*document.Record) ([]*Document, error) {
	records := make([]fronts.Record, len(ops), len(ops)+1)
	for i := range ops {
		records[i] = record(versions[i], last[i])
	}
	locks, err := c.guards(ctx, ops)
	if err != nil {
		return nil, err
	}
	before := c.session()
	first, err := c.w.PutAll(ctx, append(records, locks...))
	if err != nil {
		return nil, full(err)
	}
	out := make([]*Document, len(ops))
	for i, r := range versions {
		r.Seq = first + uint64(i)
		if c.w.Alone() {
			c.seen.put(before, r, time.Now())
		}
		out[i] = view(r)
		out[i].Made = r.Op == schemas.OpStored
	}
	return out, nil
}
