package series

import (
	"strconv"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// A row of the list is read for a shard of every lane: ids of the upper half of lanes are above what an int64 has.
func TestListRowOfEveryLane(t *testing.T) {
	t.Parallel()
	row := []string{"cpu", "1", "", "", "%", "{}", "7", "202611", "", "[]", "-5", "9"}
	for lane := range schemas.MaxLanes {
		id := schemas.NewShard(lane)
		row[8] = strconv.FormatUint(uint64(id), 10)
		r, err := readListRow("cpus", row)
		if want := (schemas.ShardRef{Topic: "cpus", Month: 202611, ID: id}); err != nil || r.ref != want || r.pos != 7 || r.first != -5 || r.last != 9 {
			t.Fatalf("lane %d: %+v, %v", lane, r, err)
		}
	}
	for at, bad := range map[int]string{6: "-1", 7: "4294967296", 8: "18446744073709551616", 9: "{", 10: "", 11: "9223372036854775808"} {
		cut := append([]string{}, row...)
		cut[at] = bad
		if r, err := readListRow("cpus", cut); err == nil {
			t.Errorf("column %d is %q: %+v", at, bad, r)
		}
	}
}
