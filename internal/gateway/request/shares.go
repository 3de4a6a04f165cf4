package request

// shares divides slots between holders. One holder may have three times as many as it leaves free, and each holder at least one while any
// is free. So one alone has three quarters; the next three quarters of the rest, and so on. It is not safe for concurrent use.
type shares struct {
	slots, taken int
	by           map[string]int
}

// sharesOf returns shares of so many slots, none of which is taken.
func sharesOf(slots int) *shares { return &shares{slots: slots, by: map[string]int{}} }

// take gives a holder n more slots, or reports that it may not have them now.
func (s *shares) take(holder string, n int) bool {
	if !mayTake(s.slots-s.taken, s.by[holder], n) {
		return false
	}
	s.taken += n
	s.by[holder] += n
	return true
}

// mayTake reports whether a holder may have n more of the slots that are free.
func mayTake(free, held, n int) bool {
	return n <= free && (held+n <= 3*(free-n) || held == 0 && n == 1)
}

// giveBack takes slots back from their holder.
func (s *shares) giveBack(holder string, n int) {
	s.taken -= n
	if s.by[holder] -= n; s.by[holder] == 0 {
		delete(s.by, holder)
	}
}
