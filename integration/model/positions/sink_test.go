package positions

// sink is what one of two sinks knows, and the insert that it is about to send.
type sink struct {
	known        bool
	head, absent int
	to           int // 0: none
	attempt      int
	filtered     bool
}

// sink has one of the sinks take its next step.
func (w *world) sink(i int) {
	s := &w.sinks[i]
	switch {
	case !s.known:
		s.head, s.absent = w.head()
		s.known, s.attempt = true, 0
	case s.to == 0 && s.head >= len(w.frames):
		s.known = !w.one(4) // a look whether ClickHouse still has it
	case s.to == 0:
		w.gather(s)
	default:
		w.insert(s)
	}
}

// gather chooses the frames of the next insert. They are all from before the fence or all from
// after it.
func (w *world) gather(s *sink) {
	to := min(len(w.frames), s.head+1+w.rng.IntN(4))
	if w.ended && s.head < w.bound {
		to = min(to, w.bound)
	}
	rows, kept := 0, 0
	for pos := s.head + 1; pos <= to; pos++ {
		rows, kept = rows+len(w.frames[pos-1]), kept+len(w.left(pos))
	}
	if kept == 0 { // no row will carry these positions: the floor does
		w.floor = max(w.floor, to)
		s.absent, s.head = s.absent+to-s.head, to
		return
	}
	s.to, s.filtered = to, kept < rows
}

// insert runs the statement, and reads the head back.
func (w *world) insert(s *sink) {
	to, t := s.to, token{s.head, s.attempt}
	s.to = 0
	refused := w.max() != s.head-s.absent && w.has(assertsHead)
	if !refused && !w.tokens[t] {
		whole := !w.one(12)
		if refused = !whole && w.has(refusesItself); !refused {
			w.tokens[t] = true
			if !w.one(15) { // else a crash of ClickHouse burns the token
				w.store(s, to, whole)
			}
		}
	}
	pos, absent := w.max(), 0
	if pos < to && (pos > s.head || !refused) && w.has(floorRead) {
		pos, absent = w.head() // stored, and erased since?
	}
	switch {
	case pos > s.head:
		s.head, s.absent, s.attempt = pos, absent, 0
	case refused:
		s.known = false
	default:
		s.attempt++ // the token was burnt
	}
}

// store makes the part.
func (w *world) store(s *sink, to int, whole bool) {
	for _, r := range w.numbered(s.head+1, to, whole) {
		if !s.filtered || keeps(w, r.row) {
			w.table = append(w.table[:len(w.table):len(w.table)], r)
		}
	}
}

// keeps reports whether the filter of an insert lets a row pass.
func keeps(w *world, r row) bool { return !r.gone || !w.has(struck) }

// numbered are the rows of frames, with the positions that the statement gives them by their
// number. A body that is not whole lacks a row.
func (w *world) numbered(from, to int, whole bool) (out []stored) {
	var rows []row
	var starts []int // by frame
	for pos := from; pos <= to; pos++ {
		starts = append(starts, len(rows))
		rows = append(rows, w.frames[pos-1]...)
	}
	if !whole {
		rows = rows[1:]
	}
	number := 0
	for _, r := range rows {
		at := from
		for i := range starts {
			if starts[i] <= number {
				at = from + i
			}
		}
		switch {
		case !w.has(ofItsFrame):
			at = to
		case !w.has(ofNoOther):
			at--
		}
		out = append(out, stored{r, at})
		if w.has(numberedFirst) || !w.ended || to > w.bound || keeps(w, r) {
			number++
		}
	}
	return out
}
