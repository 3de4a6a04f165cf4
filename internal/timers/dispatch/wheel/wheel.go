package wheel

import (
	"container/heap"
	"iter"
	"unique"
)

// Entry is a timer that waits.
type Entry struct {
	// Key is the timer's subject.
	Key string
	// Due is unix ns, Seq the sequence of the record that says so.
	Due int64
	Seq uint64
	// Group and Host are the same texts for many timers, so each text is kept once.
	Group, Host unique.Handle[string]
	// Misses counts reads that did not find the record.
	Misses uint8
	// Failed counts reads that did not come to an answer.
	Failed uint8
}

// Wheel is a heap by due time and sequence, of one entry a key. It is not safe for concurrent use.
type Wheel struct {
	heap  entries
	index map[string]*item
}

type item struct {
	Entry
	at int
}

// New returns an empty wheel.
func New() *Wheel { return &Wheel{index: map[string]*item{}} }

// Put enters a timer, in place of an entry of an older record. One of a newer record stays.
func (w *Wheel) Put(e Entry) {
	old := w.index[e.Key]
	switch {
	case old == nil:
		n := &item{Entry: e}
		w.index[e.Key] = n
		heap.Push(&w.heap, n)
	case old.Seq <= e.Seq:
		old.Entry = e
		heap.Fix(&w.heap, old.at)
	}
}

// Remove takes a timer out, unless its entry is of a record above seq.
func (w *Wheel) Remove(key string, seq uint64) {
	if old := w.index[key]; old != nil && old.Seq <= seq {
		heap.Remove(&w.heap, old.at)
		delete(w.index, key)
	}
}

// Take takes the timer that is due first, if its due time is not after now.
func (w *Wheel) Take(now int64) (Entry, bool) {
	if len(w.heap) == 0 || w.heap[0].Due > now {
		return Entry{}, false
	}
	e := heap.Pop(&w.heap).(*item)
	delete(w.index, e.Key)
	return e.Entry, true
}

// Next returns when the first timer is due; false when there is none.
func (w *Wheel) Next() (due int64, ok bool) {
	if len(w.heap) == 0 {
		return 0, false
	}
	return w.heap[0].Due, true
}

// Len returns how many timers wait.
func (w *Wheel) Len() int { return len(w.heap) }

// All passes over the timers that wait, in no order. The wheel must not change meanwhile.
func (w *Wheel) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, e := range w.heap {
			if !yield(e.Entry) {
				return
			}
		}
	}
}

// entries implements heap.Interface.
type entries []*item

func (h entries) Len() int { return len(h) }

func (h entries) Less(i, j int) bool {
	if h[i].Due != h[j].Due {
		return h[i].Due < h[j].Due
	}
	return h[i].Seq < h[j].Seq
}

func (h entries) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = i, j
}

// Push implements heap.Interface.
func (h *entries) Push(x any) {
	n := x.(*item)
	n.at = len(*h)
	*h = append(*h, n)
}

// Pop implements heap.Interface.
func (h *entries) Pop() any {
	old := *h
	n := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return n
}
