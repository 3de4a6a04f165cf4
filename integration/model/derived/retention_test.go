package derived

// retention drops the rows of shards, in two steps: it looks whether all is derived that must be,
// and drops if nothing was dropped meanwhile of what it saw.
type retention struct {
	w     *world
	heads map[int]int // of all shards, when it first looked
	next  func()
}

// step ends the drop that it began, or begins one.
func (j *retention) step(shard int) {
	if commit := j.next; commit != nil {
		j.next = nil
		commit()
		return
	}
	w := j.w
	changes, head := w.changes, w.head(shard)
	if w.dropped[shard] || head == 0 || w.looked(shard) != head || !w.exact(shard) || w.sums[shard].pos != head {
		return
	}
	if j.heads == nil {
		j.heads = map[int]int{}
		for s := range shards {
			j.heads[s] = w.head(s)
		}
	}
	for s := range shards {
		if head := w.head(s); head > 0 && w.looked(s) < min(j.heads[s], head) && !w.OthersUnseen {
			return
		}
	}
	rows, known := w.upTo(shard, head), map[row]bool{}
	for _, r := range w.rows {
		known[r] = r.pos <= w.looked(r.shard) || w.OthersUnseen
	}
	counted, copies := w.within(shard, known)
	j.next = func() {
		// A closed shard has the head that it had; that its rows are repaired between the two
		// steps is not played.
		closed := !w.dropped[shard] && w.head(shard) == head && w.upTo(shard, head) == rows
		if closed && w.changes == changes && len(w.leases) == 0 {
			w.drop(shard, counted, copies)
			j.heads = nil
		}
	}
}
