package usage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// statement is one read of a topic's diffs.
type statement struct {
	t        *schemas.Topic
	database string
	req      *Request
	snap     *snapshot
	byCause  bool

	f, e   int64 // the range, in Unix ms
	whole  []*shardState
	past   []*shardState // of those, the ones before the range
	days   []*shardState
	params map[string]string
	expect uint64 // what the sums that are read hold
}

// plan decides where each shard's share comes from. Sums are used in lanes of which every row was
// examined: one that was not may come before a row that sums stand for, and count in its
// place, since the least time and id counts and not the first to arrive.
func (s *statement) plan() error {
	open := s.snap.Open()
	s.f, s.e = s.req.From.UnixMilli(), s.req.To.UnixMilli()
	s.params = map[string]string{"from": strconv.FormatInt(s.f, 10), "to": strconv.FormatInt(s.e, 10)}
	for i := range s.snap.shards {
		st := &s.snap.shards[i]
		sums := !s.byCause && !s.snap.Absent && !open[st.Ref.ID.Lane()]
		src, err := st.source(s.f, s.e, sums, s.req.GroupBy == ByDay, s.req.instant)
		if err != nil {
			return err
		}
		switch src {
		case fromSums:
			s.whole = append(s.whole, st)
			if st.Stored.MaxTs/1e6 < s.f {
				s.past = append(s.past, st)
			}
		case fromDays:
			s.days = append(s.days, st)
		case fromRows, fromNothing:
			continue
		}
		s.expect += st.Sums.N + st.Sums.Repeats
	}
	return nil
}

// keys are the columns that tell bills apart.
func (s *statement) keys() []string {
	switch s.req.GroupBy {
	case BySpace:
		return []string{"type", "provider", "space"}
	case ByProvider:
		return []string{"type", "provider"}
	case ByCustomer:
		return []string{"type", "user_id"}
	case BySpaceAndCustomer:
		return []string{"type", "provider", "space", "user_id"}
	case ByProviderAndCustomer:
		return []string{"type", "provider", "user_id"}
	}
	return []string{"type"}
}

// selected is the condition of the request, over the columns of rows and of sums.
func (s *statement) selected(customer bool) string {
	cond := []string{"space != ''"}
	for _, c := range []struct{ column, value string }{{"type", s.req.Meter}, {"provider", s.req.Provider}, {"space", s.req.Space}, {"user_id", s.req.Customer}} {
		if c.value == "" || c.column == "user_id" && !customer {
			continue
		}
		s.params[c.column] = escapeParam(c.value)
		cond = append(cond, c.column+" = {"+c.column+":String}")
	}
	return strings.Join(cond, " AND ")
}

// escapeParam writes a value as the HTTP interface takes it: as in a TSV.
func escapeParam(v string) string {
	return strings.NewReplacer("\\", "\\\\", "\t", "\\t", "\n", "\\n", "\r", "\\r", "\x00", "\\0").Replace(v)
}

// stored is the condition of the rows that no sums stand for. Where all was examined the
// answer is as of then: what came since may have repeats that are not marked.
func (s *statement) stored() string {
	cond := []string{"ts < fromUnixTimestamp64Milli({to:Int64}, 'UTC')", s.snap.Held(s.cut())}
	for _, st := range slices.Concat(s.whole, s.days) {
		cond = append(cond, "NOT ("+sql.AboveSQL(st.Ref, 0, st.Sums.Pos)+")")
	}
	return strings.Join(cond, " AND ")
}

// cut says in which lanes rows above the heads that were read are left out.
func (s *statement) cut() once.Cut {
	switch {
	case s.req.at:
		return once.Everywhere
	case s.byCause:
		return once.Nowhere
	}
	return once.Examined
}

// afterDropped is the condition of copies whose diff that counts was in a shard that retention
// dropped: it is in that shard's sums.
func (s *statement) afterDropped() string {
	var gone []*shardState
	for i := range s.snap.shards {
		if st := &s.snap.shards[i]; st.Gone {
			gone = append(gone, st)
		}
	}
	if len(gone) == 0 || s.snap.Absent {
		return "false"
	}
	return fmt.Sprintf("(id, shard, pos) IN (SELECT id, shard, pos FROM %s WHERE (first_month, first_shard) IN (%s))", s.derived(schemas.DerivedRepeats), refsSQL(gone))
}

// rows selects the diffs that no sums stand for: with c = 1 those that count, with rep how
// many copies a row stands for that do not.
func (s *statement) rows() string {
	table := sql.QuotedTable(s.database, s.t.Name)
	if s.byCause {
		at, place := "", "" // where a row is stored, which few ask for
		if s.req.above != nil {
			at, place = ", tupleElement(first, 7) AS month, tupleElement(first, 8) AS shard, tupleElement(first, 9) AS pos", ", month, shard, pos"
		}
		q := fmt.Sprintf(`SELECT type, provider, space, tupleElement(first, 5) AS user_id, cause, tupleElement(first, 3) AS id, tupleElement(first, 1) AS ts,
 toUnixTimestamp64Milli(ts) AS t, tupleElement(first, 4) AS delta, NOT tupleElement(first, 6) AS c, n - toUInt8(c) AS rep%s
FROM (SELECT type, provider, space, cause, min((ts, toUInt128(id), id, delta, user_id, %s%s)) AS first, count() AS n FROM %s WHERE %s AND %s GROUP BY type, provider, space, cause)`,
			at, s.afterDropped(), place, table, s.selected(false), s.stored())
		if s.t.OnceWithin > 0 {
			q = s.apart(table)
		}
		if s.req.Customer != "" {
			s.params["user_id"] = escapeParam(s.req.Customer)
			q = "SELECT * FROM (" + q + ") WHERE user_id = {user_id:String}"
		}
		return q
	}
	return fmt.Sprintf(`SELECT type, provider, space, user_id, cause, id, ts, toUnixTimestamp64Milli(ts) AS t, delta, NOT (%s) AS c, toUInt64(NOT c) AS rep, month, shard, pos
FROM %s WHERE %s AND %s`, s.snap.Again(), table, s.selected(true), s.stored())
}

func (s *statement) derived(name string) string {
	return sql.QuotedTable(s.database, schemas.DerivedTable(s.t.Name, name))
}

// summed selects what sums stand for: of a shard or a day with past = 1 what lies before the
// range; weighted counts to the end of the range's month in column mend.
func (s *statement) summed() (parts []string) {
	if len(s.whole) > 0 {
		past := "false"
		if len(s.past) > 0 {
			past = "(month, shard) IN (" + refsSQL(s.past) + ")"
		}
		parts = append(parts, fmt.Sprintf(`SELECT type, provider, space, user_id, month, %s AS past, toInt64(0) AS day, n, repeats, delta, weighted, %s AS mend FROM %s WHERE (month, shard) IN (%s) AND %s`,
			past, s.ends(s.whole), s.derived(schemas.DerivedSums), refsSQL(s.whole), s.selected(true)))
	}
	if len(s.days) > 0 {
		parts = append(parts, fmt.Sprintf(`SELECT type, provider, space, user_id, month, day < {from:Int64} AS past, mstart + (toInt64(tupleElement(d, 1)) - 1) * %d AS day,
 tupleElement(d, 2) AS n, tupleElement(d, 3) AS repeats, tupleElement(d, 4) AS delta, tupleElement(d, 5) AS weighted, mend
FROM (SELECT type, provider, space, user_id, month, %s AS mstart, %s AS mend, days FROM %s WHERE (month, shard) IN (%s) AND %s)
ARRAY JOIN arrayZip(tupleElement(days, 1), tupleElement(days, 2), tupleElement(days, 3), tupleElement(days, 4), tupleElement(days, 5)) AS d WHERE day < {to:Int64}`,
			dayMs, s.starts(s.days), s.ends(s.days), s.derived(schemas.DerivedSums), refsSQL(s.days), s.selected(true)))
	}
	return parts
}

func refsSQL(states []*shardState) string {
	refs := make([]string, len(states))
	for i, st := range states {
		refs[i] = fmt.Sprintf("(%d,%d)", uint32(st.Ref.Month), uint64(st.Ref.ID))
	}
	return strings.Join(refs, ",")
}

// starts and ends are the first instant of a row's month, and the first after it, in Unix ms.
func (s *statement) starts(states []*shardState) string {
	return byMonth(states, schemas.Month.Start)
}

func (s *statement) ends(states []*shardState) string { return byMonth(states, schemas.Month.End) }

func byMonth(states []*shardState, ns func(schemas.Month) int64) string {
	var months []schemas.Month
	for _, st := range states {
		months = append(months, st.Ref.Month)
	}
	slices.Sort(months)
	months = slices.Compact(months)
	var keys, values []string
	for _, m := range months {
		keys, values = append(keys, fmt.Sprint(uint32(m))), append(values, fmt.Sprintf("toInt64(%d)", ns(m)/1e6))
	}
	return "transform(month, [" + strings.Join(keys, ",") + "], [" + strings.Join(values, ",") + "], toInt64(0))"
}

// assertion is a condition that holds while marks and sums are as the snapshot found them.
func (s *statement) assertion() string {
	var cond []string
	if !s.byCause {
		cond = append(cond, s.snap.Unmoved(false))
	}
	if read := slices.Concat(s.whole, s.days); len(read) > 0 {
		cond = append(cond, fmt.Sprintf("throwIf((SELECT sum(n) + sum(repeats) FROM %s WHERE (month, shard) IN (%s)) != %d, '%s') = 0", s.derived(schemas.DerivedSums), refsSQL(read), s.expect, once.TextMoved))
	}
	if len(cond) == 0 {
		return "1"
	}
	return strings.Join(cond, " AND ")
}

// byKey is the statement whose rows are a bill each: the keys, then before, end, usage, causes
// before, causes, repeats.
func (s *statement) byKey() string {
	keys := strings.Join(s.keys(), ", ")
	parts := []string{fmt.Sprintf(`SELECT %s, sumIf(toInt128(delta), c AND t < {from:Int64}) AS b, sumIf(toInt128(delta), c) AS s, sumIf(toInt128(delta) * ({to:Int64} - greatest(t, {from:Int64})), c) AS u,
 countIf(c AND t < {from:Int64}) AS cb, countIf(c) AS ca, toUInt64(sum(rep)) AS re FROM (%s) GROUP BY %s`, keys, s.rows(), keys)}
	for _, sums := range s.summed() {
		parts = append(parts, fmt.Sprintf(`SELECT %s, sumIf(delta, past) AS b, sum(delta) AS s, sum(if(past, delta * ({to:Int64} - {from:Int64}), weighted + delta * ({to:Int64} - mend))) AS u,
 sumIf(n, past) AS cb, sum(n) AS ca, sum(repeats) AS re FROM (%s) GROUP BY %s`, keys, sums, keys))
	}
	return fmt.Sprintf("SELECT %s, toString(sum(b)), toString(sum(s)), toString(sum(u)), toString(sum(cb)), toString(sum(ca)), toString(sum(re)) FROM (%s) WHERE %s GROUP BY %s HAVING sum(ca) + sum(re) > 0 ORDER BY %s FORMAT JSONCompactEachRow",
		keys, strings.Join(parts, "\nUNION ALL\n"), s.assertion(), keys, keys)
}

// byTime is the statement whose rows are a meter's span of time each: the meter, the span (a
// day by its number, a month as YYYYMM, -1 before the range), then delta, weighted to the
// span's end, causes, repeats.
func (s *statement) byTime() string {
	ofRow, ofDay, end := "intDiv(t, 86400000)", "intDiv(day, 86400000)", "least({to:Int64}, (k + 1) * 86400000)"
	if s.req.GroupBy == ByMonth {
		ofRow, ofDay = "toInt64(toYYYYMM(fromUnixTimestamp64Milli(t, 'UTC')))", "toInt64(month)"
		end = s.monthEnds()
	}
	parts := []string{fmt.Sprintf(`SELECT type, if(t < {from:Int64}, toInt64(-1), %s) AS k, sumIf(toInt128(delta), c) AS d, sumIf(toInt128(delta) * (%s - t), c) AS w, countIf(c) AS ca, toUInt64(sum(rep)) AS re FROM (%s) GROUP BY type, k`, ofRow, end, s.rows())}
	for _, sums := range s.summed() {
		parts = append(parts, fmt.Sprintf(`SELECT type, if(past, toInt64(-1), %s) AS k, sum(delta) AS d, sum(weighted + delta * (%s - mend)) AS w, sum(n) AS ca, sum(repeats) AS re FROM (%s) GROUP BY type, k`, ofDay, end, sums))
	}
	return fmt.Sprintf("SELECT type, toString(k), toString(sum(d)), toString(sum(w)), toString(sum(ca)), toString(sum(re)) FROM (%s) WHERE %s GROUP BY type, k ORDER BY type, k FORMAT JSONCompactEachRow",
		strings.Join(parts, "\nUNION ALL\n"), s.assertion())
}

// monthEnds is the end of the span k, a month.
func (s *statement) monthEnds() string {
	var keys, values []string
	for _, edge := range s.req.edges() {
		m := schemas.MonthOf(edge * 1e6)
		keys, values = append(keys, fmt.Sprintf("toInt64(%d)", uint32(m))), append(values, fmt.Sprintf("toInt64(%d)", min(s.e, m.End()/1e6)))
	}
	return "transform(k, [" + strings.Join(keys, ",") + "], [" + strings.Join(values, ",") + "], toInt64(0))"
}
