package replay

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
)

// Bounds of a merge: the shards that may be open at once, and what each holds
// ahead. With usual frames of 2,000 events an open shard has about 2 MiB.
const (
	maxOpen      = 256
	aheadOfShard = 4 << 20
	// maxMerged bounds the shards of a job by time: its cursor names each.
	maxMerged = 5000
)

// open is a shard that a merge reads.
type open struct {
	shard *shard
	st    *stream
	unit  *unit
	at    int // the next event of unit
}

// next is the shard's next event.
func (o *open) next() entry { return o.unit.rows[o.at] }

// merge gives events of shards in the order of time.
type merge struct {
	j       *Job
	waiting []*shard // not open yet, by the time they may begin
	heap    mergeHeap
}

func (j *Job) newMerge(shards []*shard) (*merge, error) {
	if len(shards) > maxMerged {
		return nil, fmt.Errorf("%w: %d shards, the limit is %d; narrow --from and --to, or replay by position", ErrTooWide, len(shards), maxMerged)
	}
	m := &merge{j: j, waiting: slices.Clone(shards)}
	slices.SortStableFunc(m.waiting, func(a, b *shard) int { return cmp.Compare(a.MinTs, b.MinTs) })
	return m, nil
}

// next is the shard whose event comes next; nil at the end. Its event is taken by
// advance.
func (m *merge) next(ctx context.Context) (*open, error) {
	for len(m.waiting) > 0 && (len(m.heap) == 0 || m.waiting[0].MinTs <= m.heap[0].next().ts) {
		if len(m.heap) == maxOpen {
			return nil, fmt.Errorf("%w: more than %d at %s; choose one with --shard, or replay by position", ErrTooWide, maxOpen, isoTime(m.heap[0].next().ts))
		}
		s := m.waiting[0]
		m.waiting = m.waiting[1:]
		o := &open{shard: s, st: m.j.pipe(ctx, []*shard{s}, 1, 1, aheadOfShard, true)}
		m.j.begun = append(m.j.begun, s)
		if err := m.fill(o, s.at.Given); err != nil {
			return nil, err
		}
		if o.unit != nil {
			heap.Push(&m.heap, o)
		}
	}
	if len(m.heap) == 0 {
		return nil, nil
	}
	return m.heap[0], nil
}

// fill takes units of a shard until one has an event that is not given yet.
func (m *merge) fill(o *open, g *given) (err error) {
	for {
		if o.unit, err = o.st.next(o.unit); err != nil || o.unit == nil {
			o.st.close()
			if err == nil {
				o.shard.at = position{Number: o.shard.to}
			}
			return err
		}
		if o.at = o.unit.after(g); o.at < len(o.unit.rows) {
			return nil
		}
		m.j.passed(o.unit)
	}
}

// advance leaves the event behind that next gave.
func (m *merge) advance(o *open) error {
	if o.at++; o.at < len(o.unit.rows) {
		o.shard.at.Given = o.unit.upTo(o.at - 1)
		heap.Fix(&m.heap, 0)
		return nil
	}
	m.j.passed(o.unit)
	if err := m.fill(o, nil); err != nil {
		return err
	}
	if o.unit == nil {
		heap.Pop(&m.heap)
	} else {
		heap.Fix(&m.heap, 0)
	}
	return nil
}

// close ends the streams of all open shards.
func (m *merge) close() {
	for _, o := range m.heap {
		o.st.close()
	}
}

// mergeHeap orders open shards by their next event's time and id, and else by shard, so
// that the order is the same each time.
type mergeHeap []*open

// Len implements heap.Interface.
func (h mergeHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h mergeHeap) Less(i, k int) bool {
	return cmp.Or(h[i].next().compare(h[k].next()), cmp.Compare(h[i].shard.ID, h[k].shard.ID)) < 0
}

// Swap implements heap.Interface.
func (h mergeHeap) Swap(i, k int) { h[i], h[k] = h[k], h[i] }

// Push implements heap.Interface.
func (h *mergeHeap) Push(x any) { *h = append(*h, x.(*open)) }

// Pop implements heap.Interface.
func (h *mergeHeap) Pop() any {
	old := *h
	o := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return o
}
