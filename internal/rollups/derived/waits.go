package derived

import (
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

// Waits says why the rows of a shard must stay for now: its sums, which are all that stays of
// it when they go, do not stand for each of them. Empty: nothing of it waits.
func (s *Progress) Waits() string {
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

// Heads are the positions up to which the topic's shards have rows.
func (d *State) Heads() map[schemas.ShardRef]uint64 {
	heads := map[schemas.ShardRef]uint64{}
	for ref, s := range d.Shards {
		if s.Stored.Rows > 0 {
			heads[ref] = s.Stored.Head
		}
	}
	return heads
}

// Behind says which shard of a lane is not looked for repeats up to where it had rows before. Empty: each
// is. A copy among its rows is not marked yet, and would count once the event that counts is gone.
func (d *State) Behind(lane int, heads map[schemas.ShardRef]uint64) string {
	for ref, head := range heads {
		if s := d.Shards[ref]; ref.ID.Lane() == lane && s.Stored.Rows > 0 && s.Examined < head {
			return fmt.Sprintf("%s is looked for repeats up to position %d of %d", ref, s.Examined, head)
		}
	}
	return ""
}
