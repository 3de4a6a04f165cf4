package tables

import "fmt"

// Waits says why the rows of a shard must stay for now: its sums, which are all that stays of
// it when they go, do not stand for each of them. Empty: nothing of it waits.
func (s *DerivedShard) Waits() string {
	switch {
	case s.Stored.Rows == 0:
		return ""
	case s.Doubted:
		return "it has other rows than when it was looked for repeats, and is looked through again"
	case s.Examined < s.Stored.Head:
		return fmt.Sprintf("it is looked for repeats up to position %d of %d", s.Examined, s.Stored.Head)
	case s.Sums.Pos == 0:
		return "it is not summed"
	case !s.Sums.Exact():
		return fmt.Sprintf("its sums hold %d diffs and %d repeats up to position %d, which its rows do not, and are filled again", s.Sums.N, s.Sums.Repeats, s.Sums.Pos)
	case s.Sums.Pos != s.Stored.Head:
		return fmt.Sprintf("its sums reach position %d of %d", s.Sums.Pos, s.Stored.Head)
	}
	return ""
}
