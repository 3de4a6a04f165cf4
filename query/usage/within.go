package usage

import (
	"fmt"
	"time"
)

// apart is rows by cause for a topic with once_within: of equal diffs each counts that comes
// longer than that after the one before it. The first of a cause has the number of copies.
func (s *statement) apart(table string) string {
	return fmt.Sprintf(`SELECT type, provider, space, tupleElement(one, 5) AS user_id, cause, tupleElement(one, 3) AS id, tupleElement(one, 1) AS ts,
 toUnixTimestamp64Milli(ts) AS t, tupleElement(one, 4) AS delta, true AS c, if(one = counting[1], length(same) - length(counting), 0) AS rep,
 tupleElement(one, 6) AS month, tupleElement(one, 7) AS shard, tupleElement(one, 8) AS pos
FROM (SELECT type, provider, space, cause, arraySort(groupArray((ts, toUInt128(id), id, delta, user_id, month, shard, pos, %s))) AS same,
 arrayFilter((x, i) -> NOT tupleElement(x, 9) AND (i = 1 OR toUnixTimestamp64Nano(tupleElement(x, 1)) - toUnixTimestamp64Nano(tupleElement(same[i - 1], 1)) > %d), same, arrayEnumerate(same)) AS counting
 FROM %s WHERE %s AND %s GROUP BY type, provider, space, cause)
ARRAY JOIN counting AS one`, s.afterDropped(), s.t.OnceWithin/time.Nanosecond, table, s.selected(false), s.stored())
}
