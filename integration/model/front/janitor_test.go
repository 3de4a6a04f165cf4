package front

// perShard is how many rows a shard of the model has, keepFor how many steps its youngest is kept. From
// quietFrom on one document is left alone where retention is at work, so that it goes.
const (
	perShard  = 3
	quietFrom = 300
	keepFor   = 200
)

// janitor drops the shards that are past their time, one after the other: it marks a shard, takes
// what has its row there out of the front, and then the rows. Two are at work at once.
func (w *world) janitor(next ask) {
	for next() {
		s, due := w.due()
		if !due {
			continue
		}
		w.marked[s] = true
		if !w.has(RowsFirst) && !w.expire(s, next) || !next() {
			return
		}
		w.drop(s)
		if w.has(RowsFirst) && !w.expire(s, next) {
			return
		}
	}
}

// due is the oldest shard that has its rows, once it is full and past its time.
func (w *world) due() (shard int, due bool) {
	for s := 0; (s+1)*perShard <= len(w.table); s++ {
		if w.dropped[s] {
			continue
		}
		if youngest := w.table[(s+1)*perShard-1]; w.steps-w.at[youngest.seq] < keepFor {
			return 0, false
		}
		if !w.has(AnyOrder) || w.rnd.IntN(2) == 0 {
			return s, true
		}
	}
	return 0, false
}

// expire walks the front, and goes on with what came since it began, until that has nothing of a shard.
func (w *world) expire(s int, next ask) bool {
	for began, found := 0, true; found && (began == 0 || !w.has(NoTail)); {
		at, end := began, w.lastSeq
		found, began = at == 0, end
		for at < end {
			if !next() {
				return false
			}
			var m message
			if m, at = w.after(at, end); m.seq == 0 || w.shardOf(m.row) != s {
				continue
			}
			found = true
			if !next() {
				return false
			}
			upTo := m.seq
			if w.has(ExpiresAll) {
				upTo = w.lastSeq
			}
			if w.last(m.key).seq <= upTo {
				w.expired[m.row] = true
			}
			w.purge(m.key, upTo)
		}
	}
	return true
}

// after is the first message above a sequence, up to an end, and where the walk is then.
func (w *world) after(at, end int) (message, int) {
	for _, m := range w.front {
		if m.seq > at && m.seq <= end {
			return m, m.seq
		}
	}
	return message{}, end
}

// drop takes a shard's rows. Nothing in the front may stand for one of them, and of no document may
// older versions stay alone: a repair of the front would bring it back.
func (w *world) drop(s int) {
	w.dropped[s] = true
	for _, m := range w.front {
		if w.shardOf(m.row) == s {
			w.fail("message %d of the front stands for version %d of document %d, and retention dropped its row", m.seq, m.version, m.key)
		}
	}
	var newest [keys]row
	for i, r := range w.table {
		if !w.marked[i/perShard] {
			newest[r.key] = r
		}
	}
	for key, r := range newest {
		if last := w.last(key); r.seq > 0 && !r.removed && (last.seq == 0 || last.row < r.seq) {
			w.fail("of document %d version %d stayed alone, which retention took with a newer one", key, r.version)
		}
	}
}

// shardOf is the shard of the row of a sequence, -1 before it is stored.
func (w *world) shardOf(seq int) int {
	for i, r := range w.table {
		if r.seq == seq {
			return i / perShard
		}
	}
	return -1
}

// visible are the rows that the table has.
func (w *world) visible() (rows []row) {
	for i, r := range w.table {
		if !w.dropped[i/perShard] {
			rows = append(rows, r)
		}
	}
	return rows
}
