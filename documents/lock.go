package documents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/fronts"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// Lock is a lock on an id. Nothing but other locks, and writes that name one, go by it.
type Lock struct {
	ID string `json:"id"`
	// Token names the lock: a number that grows from one lock to the next, whatever clocks do.
	Token uint64 `json:"token"`
	By    string `json:"by,omitempty"`
	// Until is when it ends, by the clock of NATS. It is held until NATS has removed it,
	// which is a little later.
	Until time.Time `json:"until"`
}

// AnyLock makes Unlock release whatever lock is held.
const AnyLock = 0

// Lock locks an id, which need not have a document, for a time. *LockError says who holds
// it already.
func (c *Collection) Lock(ctx context.Context, id, by string, d time.Duration) (*Lock, error) {
	if err := document.CheckLock(by, d); err != nil {
		return nil, fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	return c.relock(ctx, id, func(held *document.Lock) (*document.Lock, error) {
		if held.Held() {
			return nil, &LockError{ID: id, Holder: lockView(id, held)}
		}
		return &document.Lock{By: by, For: d}, nil
	})
}

// LockAndLoad locks an id and loads its document, as it is under the lock.
func (c *Collection) LockAndLoad(ctx context.Context, id, by string, d time.Duration) (*Document, *Lock, error) {
	l, err := c.Lock(ctx, id, by, d)
	if err != nil {
		return nil, nil, err
	}
	doc, err := c.Load(ctx, id)
	if err != nil {
		return nil, nil, errors.Join(err, c.Unlock(ctx, id, l.Token))
	}
	return doc, l, nil
}

// Renew has a lock go on for a time from now. *LockError: it was lost.
func (c *Collection) Renew(ctx context.Context, id string, token uint64, d time.Duration) (*Lock, error) {
	if err := document.CheckLock("", d); err != nil {
		return nil, fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	return c.relock(ctx, id, func(held *document.Lock) (*document.Lock, error) {
		if !held.Held() || held.Token != token {
			return nil, &LockError{ID: id, Token: token, Holder: lockView(id, held)}
		}
		return &document.Lock{Token: token, By: held.By, For: d}, nil
	})
}

// Unlock releases a lock. *LockError: it was lost before.
func (c *Collection) Unlock(ctx context.Context, id string, token uint64) error {
	_, err := c.relock(ctx, id, func(held *document.Lock) (*document.Lock, error) {
		if !held.Held() || token != AnyLock && held.Token != token {
			return nil, &LockError{ID: id, Token: token, Holder: lockView(id, held)}
		}
		token = held.Token // where another one comes first, its lock is not released
		return &document.Lock{Released: true}, nil
	})
	return err
}

// Locked returns the lock that is held on an id, nil without one.
func (c *Collection) Locked(ctx context.Context, id string) (*Lock, error) {
	if err := c.checkID(id); err != nil {
		return nil, err
	}
	held, err := c.lockOf(ctx, id)
	return lockView(id, held), err
}

// relock puts another lock in the place of the one that is there, which next decides.
func (c *Collection) relock(ctx context.Context, id string, next func(held *document.Lock) (*document.Lock, error)) (*Lock, error) {
	if err := c.checkID(id); err != nil {
		return nil, err
	}
	if err := c.removed.Check(ctx); err != nil {
		return nil, err
	}
	for range tries {
		held, err := c.lockOf(ctx, id)
		if err != nil {
			return nil, err
		}
		l, err := next(held)
		if err != nil {
			return nil, err
		}
		seq, err := c.w.Put(ctx, c.lockRecord(id, l, held))
		if errors.Is(err, fronts.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, full(err)
		}
		if err := c.removed.Check(ctx); err != nil {
			return nil, err
		}
		if l.Released {
			return nil, nil
		}
		now, err := c.lockOf(ctx, id) // when it was stored, by the server's clock
		if err != nil {
			return nil, err
		}
		if !now.Held() || l.Token == 0 && now.Seq != seq || l.Token != 0 && now.Token != l.Token {
			return nil, &LockError{ID: id, Token: l.Token, Holder: lockView(id, now)}
		}
		return lockView(id, now), nil
	}
	return nil, fmt.Errorf("%w: the lock on %q, %d times", ErrBusy, id, tries)
}

// lockOf reads what there is of a lock on an id, nil without anything. A lock whose place another program's message
// took was lost: a write under it is refused.
func (c *Collection) lockOf(ctx context.Context, id string) (*document.Lock, error) {
	l, last, err := fronts.Newest(ctx, c.w, c.lockSubject(id), parseLock)
	switch {
	case err != nil && !errors.Is(err, fronts.ErrReplaced):
		return nil, err
	case l == nil && last > 0:
		return &document.Lock{Released: true, Last: last}, nil
	case l != nil && l.Seq != last:
		l.Last = last
	}
	return l, nil
}

func parseLock(msg *streams.Message) (*document.Lock, error) {
	l, err := document.ParseLock(msg.Sequence, msg.Time, msg.Header)
	if err != nil {
		return nil, fmt.Errorf("documents: message %d of %s: %w; another program wrote it", msg.Sequence, schemas.StreamDocs, err)
	}
	return l, nil
}

func (c *Collection) lockSubject(id string) string {
	return schemas.DocLockSubject(c.topic.InFronts(), document.Lane(&c.topic, id), id)
}

// lockRecord is the message of a lock that takes the place of another. It removes that one,
// which could outlive it.
func (c *Collection) lockRecord(id string, l, held *document.Lock) fronts.Record {
	r := fronts.Record{Subject: c.lockSubject(id), Header: l.Header(), For: fronts.Change}
	if held != nil { // it takes the place of that one
		r.For = fronts.End
	}
	if held != nil {
		r.Expect = held.Expect()
		r.Header[jetstream.MsgRollup] = []string{jetstream.MsgRollupSubject}
	}
	return r
}

// guards are the messages that hold writes to the locks that they name: each is refused
// where its lock was lost, and with it the whole batch. They renew the locks, or release them.
func (c *Collection) guards(ctx context.Context, ops []Op) (out []fronts.Record, err error) {
	lost := &BatchError{}
	for i := range ops {
		op := &ops[i]
		if op.Lock == 0 {
			continue
		}
		held, err := c.lockOf(ctx, op.ID)
		if err != nil {
			return nil, err
		}
		if !held.Held() || held.Token != op.Lock {
			lost.Members = append(lost.Members, MemberError{i, op.ID, &LockError{ID: op.ID, Token: op.Lock, Holder: lockView(op.ID, held)}})
			continue
		}
		next := &document.Lock{Token: held.Token, By: held.By, For: held.For}
		if op.Unlock {
			next = &document.Lock{Released: true}
		}
		out = append(out, c.lockRecord(op.ID, next, held))
	}
	if len(lost.Members) > 0 {
		return nil, lost
	}
	return out, nil
}

// Locks lists the locks that are held in a topic, by id.
func (c *Collection) Locks(ctx context.Context) ([]*Lock, error) {
	last := map[string]*Lock{}
	_, err := streams.Headers(ctx, c.reg.JetStream(), schemas.StreamDocs, schemas.DocLockTopicFilter(c.topic.InFronts()), 1, func(msg *streams.Message) error {
		id, err := schemas.DocLockID(msg.Subject)
		if err != nil {
			return nil
		}
		if l, err := parseLock(msg); err == nil {
			last[id] = lockView(id, l)
		}
		return nil
	})
	return sortedLocks(last), err
}

func (c *Collection) checkID(id string) error {
	if err := document.CheckID(c.topic.Documents, id); err != nil {
		return fmt.Errorf("%w: %w", schemas.ErrRequest, err)
	}
	return nil
}

// lockView is a lock as a caller has it, nil for none and for one that was released.
func lockView(id string, l *document.Lock) *Lock {
	if !l.Held() {
		return nil
	}
	return &Lock{ID: id, Token: l.Token, By: l.By, Until: l.Until}
}

func sortedLocks(by map[string]*Lock) []*Lock {
	out := []*Lock{}
	for _, id := range slices.Sorted(maps.Keys(by)) {
		if by[id] != nil {
			out = append(out, by[id])
		}
	}
	return out
}
