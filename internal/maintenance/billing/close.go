package billing

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
)

// Close publishes the bills of a month, once. Called again it finishes what a killed call left,
// and otherwise publishes nothing.
func (d *Closer) Close(ctx context.Context, r Request) (*Result, error) {
	if r.GroupBy == "" {
		r.GroupBy = usage.BySpace
	}
	if r.Measure == "" {
		r.Measure = usage.Integral
	}
	into, err := d.check(ctx, &r)
	if err != nil {
		return nil, err
	}
	res, err := d.closeInto(ctx, r, into)
	return res, d.cfg.Registry.IfRemoved(ctx, err, r.from, into)
}

func (d *Closer) closeInto(ctx context.Context, r Request, into *schemas.Topic) (*Result, error) {
	l, err := d.read(ctx, &r, into)
	if err != nil {
		return nil, err
	}
	res := r.result()
	if first := l.rounds[0]; first != nil {
		s := state{Into: r.Into, GroupBy: first.groupBy, Measure: first.measure}
		if err := s.fits(&r); err != nil {
			return nil, err
		}
		if first.complete() {
			res.Before, res.Bills = true, l.revised(0)
			return res, d.finish(ctx, &r, into)
		}
	}
	if err := d.closed(ctx, &r); err != nil {
		return nil, err
	}
	bills, at, err := d.report(ctx, &r)
	if err != nil {
		return nil, err
	}
	res.Bills = len(bills)
	if r.DryRun {
		return res, nil
	}
	run := r.run(at)
	var items []item
	for _, k := range slices.SortedFunc(maps.Keys(bills), Key.compare) {
		b := bills[k]
		items = append(items, item{k, r.id(k, 0), r.billEvent(k, &b, 0, run)})
	}
	d.cfg.Crash("billing.read")
	buckets, err := d.begin(ctx, &r, l, 0, into, items)
	if err != nil {
		return nil, err
	}
	d.cfg.Crash("billing.begun")
	if res.Published, err = d.publish(ctx, &r, l, 0, buckets, into, at, items); err != nil {
		return nil, err
	}
	return res, d.finish(ctx, &r, into)
}

// revised counts the keys with a revision of a round, or a later one of theirs.
func (l *ledger) revised(revision int) (n int) {
	for _, p := range l.bills {
		if p.revision >= revision {
			n++
		}
	}
	return n
}

func (r *Request) result() *Result {
	return &Result{Topic: r.Topic, Month: r.Month.String(), Into: r.Into, GroupBy: r.GroupBy, Measure: r.Measure}
}

// maxRounds bounds the rounds of one call: the one that a killed call left, its own, and one
// for each of those that others publish meanwhile.
const maxRounds = 5

// Corrections publishes, for each bill of a closed month that is not what was published last,
// old and new numbers and the diffs that were stored since. Called again it publishes what
// moved since.
func (d *Closer) Corrections(ctx context.Context, r Request) (*Result, error) {
	into, err := d.check(ctx, &r)
	if err != nil {
		return nil, err
	}
	res, err := d.correct(ctx, r, into)
	return res, d.cfg.Registry.IfRemoved(ctx, err, r.from, into)
}

func (d *Closer) correct(ctx context.Context, r Request, into *schemas.Topic) (*Result, error) {
	var res *Result
	for range maxRounds {
		l, err := d.read(ctx, &r, into)
		if err != nil {
			return nil, err
		}
		first := l.rounds[0]
		if !first.complete() {
			if err := d.closed(ctx, &r); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("%w: %w: month %s of topic %q in %q: almanac usage close %s --month %s --into %s", schemas.ErrRequest, ErrOpen, r.Month, r.Topic, r.Into, r.Topic, r.Month, r.Into)
		}
		r.GroupBy, r.Measure = first.groupBy, first.measure
		if res == nil {
			res = r.result()
		}
		bills, at, err := d.report(ctx, &r)
		if err != nil {
			return nil, err
		}
		res.Bills = len(bills)
		number, moved := l.last(), l.moved(bills)
		if l.rounds[number].complete() {
			if len(moved) == 0 {
				return res, d.finish(ctx, &r, into)
			}
			number++
		}
		items, said, err := d.corrections(ctx, &r, l, number, r.run(at), bills, moved)
		if err != nil || r.DryRun {
			res.Corrections = said
			return res, err
		}
		d.cfg.Crash("billing.read")
		buckets, err := d.begin(ctx, &r, l, number, into, items)
		if err != nil {
			return nil, err
		}
		d.cfg.Crash("billing.begun")
		n, err := d.publish(ctx, &r, l, number, buckets, into, at, items)
		if err != nil {
			return nil, err
		}
		res.Published, res.Corrections = res.Published+n, append(res.Corrections, said...)
	}
	return res, nil
}

// corrections are the events of a round for bills that moved.
func (d *Closer) corrections(ctx context.Context, r *Request, l *ledger, number int, run string, bills map[Key]usage.Bill, moved []Key) (items []item, said []Correction, err error) {
	under := l.rounds[number]
	for _, k := range moved {
		p, known := l.bills[k]
		if under != nil && under.found[k.bucket(under.buckets)] {
			continue // the bucket is there: the next round's
		}
		c := Correction{Key: k, Was: p.bill, Now: bills[k]}
		if known {
			c.Revision = p.revision + 1
		} else {
			c.Was = none(k)
		}
		if c.Now.Usage == "" {
			c.Now = none(k)
		}
		at := l.positions(p.run)
		if !known {
			at = usage.Positions{} // all of its diffs
		}
		if c.Unknown = at == nil; !c.Unknown {
			req := r.usage()
			req.Meter, req.Provider, req.Space, req.Customer = k.Meter, k.Provider, k.Space, k.Customer
			if c.Since, err = d.usage.DiffsAbove(ctx, req, at, maxSince+1); err != nil {
				return nil, nil, err
			}
			if c.More = len(c.Since) > maxSince; c.More {
				c.Since = c.Since[:maxSince]
			}
			if r.GroupBy.OfCustomer() && k.Customer == "" { // no name selects all customers
				c.Since = slices.DeleteFunc(c.Since, func(d usage.Diff) bool { return d.Customer != "" })
			}
		}
		said = append(said, c)
		items = append(items, item{k, r.id(k, c.Revision), r.correctionEvent(&c, number, run)})
	}
	return items, said, nil
}

// none is the bill of a key without diffs.
func none(k Key) usage.Bill {
	return usage.Bill{Meter: k.Meter, Provider: k.Provider, Space: k.Space, Customer: k.Customer, SizeStart: "0", SizeEnd: "0", Usage: "0"}
}
