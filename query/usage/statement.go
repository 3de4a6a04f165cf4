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

	from, until int64 // of req, in Unix ms as the bounds of shards are compared; until is excluded
	whole       []*shardState
	past        []*shardState // of those, the ones before the range
	days        []*shardState
	params      map[string]string
	expect      uint64 // what the sums that are read hold
}

// plan decides where each shard's share comes from. Sums are used in lanes of which every row was
// examined: one that was not may come before a row that sums stand for, and count in its
// place, since the least time and id counts and not the first to arrive.
func (s *statement) plan() error {
	open := s.snap.Open()
	s.from, s.until = s.req.From.UnixMilli(), s.req.To.UnixMilli()
	s.params = map[string]string{"from": strconv.FormatInt(s.from, 10), "to": strconv.FormatInt(s.until, 10)}
	for i := range s.snap.shards {
		st := &s.snap.shards[i]
		sums := !s.byCause && !s.snap.Absent && !open[st.Ref.ID.Lane()]
		src, err := st.source(s.from, s.until, sums, s.req.GroupBy == ByDay, s.req.instant)
		if err != nil {
			return err
		}
		switch src {
		case fromSums:
			s.whole = append(s.whole, st)
			if st.Stored.MaxTs/1e6 < s.from {
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
	var cond []string
	if s.req.Space == "" {
		cond = append(cond, "space != ''")
	}
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

// noneDropped is the condition of no row.
const noneDropped = "false"

// allCount says that each of the rows counts: one for each cause, and none is a copy of a diff that was dropped.
func (s *statement) allCount() bool {
	return s.byCause && s.t.OnceWithin == 0 && s.afterDropped() == noneDropped
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
		return noneDropped
	}
	return fmt.Sprintf("(id, shard, pos) IN (SELECT id, shard, pos FROM %s WHERE (first_month, first_shard) IN (%s))", s.derived(schemas.DerivedRepeats), refsSQL(gone))
}

// rows selects the diffs that no sums stand for: with c = 1 those that count, with rep how
// many copies a row stands for that do not. billed: only what bills are made of.
func (s *statement) rows(billed bool) string {
	table := sql.QuotedTable(s.database, s.t.Name)
	if !s.byCause {
		return sql.UsageRows{Table: table, Where: s.selected(true) + " AND " + s.stored(), Again: s.snap.Again()}.SQL()
	}
	where := s.selected(false) + " AND " + s.stored()
	if s.req.Customer != "" {
		s.params["user_id"] = escapeParam(s.req.Customer)
	}
	return sql.UsageCauses{
		Table: table, Where: where, AfterDropped: s.afterDropped(),
		Places: s.req.above != nil, OfCustomer: s.req.Customer != "", Within: int64(s.t.OnceWithin),
		Billed: billed && s.allCount(), Customers: s.req.Customer != "" || s.req.GroupBy.OfCustomer(), Space: s.req.Space != "",
	}.SQL()
}

func (s *statement) derived(name string) string {
	return sql.QuotedTable(s.database, schemas.DerivedTable(s.t.Name, name))
}

// summed selects what sums stand for: of a shard or a day with past = 1 what lies before the
// range; weighted counts to the end of the range's month in column mend.
func (s *statement) summed() (parts []string) {
	sums := s.derived(schemas.DerivedSums)
	if len(s.whole) > 0 {
		parts = append(parts, sql.UsageSums{Sums: sums, Where: s.selected(true), Shards: refsSQL(s.whole), Past: refsSQL(s.past), EndsSQL: s.ends(s.whole)}.SQL())
	}
	if len(s.days) > 0 {
		parts = append(parts, sql.UsageDays{Sums: sums, Where: s.selected(true), Shards: refsSQL(s.days), BeginsSQL: s.starts(s.days), EndsSQL: s.ends(s.days), DayMs: dayMs}.SQL())
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

// byKey is the statement whose rows are a bill each.
func (s *statement) byKey() string {
	keys := s.keys()
	return sql.UsageBills{Keys: strings.Join(keys, ", "), Rows: s.rows(true), All: s.allCount(), Sums: s.summed(), Unmoved: s.assertion(), AfterSQL: s.afterPage(keys), Limit: s.req.limit}.SQL()
}

// byTime is the statement whose rows are a meter's span of time each.
func (s *statement) byTime() string {
	spans := sql.UsageSpans{Rows: s.rows(true), Sums: s.summed(), Unmoved: s.assertion()}
	if spans.ByMonth = s.req.GroupBy == ByMonth; spans.ByMonth {
		spans.EndsSQL = s.monthEnds()
	}
	return spans.SQL()
}

// monthEnds is the end of the span k, a month.
func (s *statement) monthEnds() string {
	var keys, values []string
	for _, edge := range s.req.edges() {
		m := schemas.MonthOf(edge * 1e6)
		keys, values = append(keys, fmt.Sprintf("toInt64(%d)", uint32(m))), append(values, fmt.Sprintf("toInt64(%d)", min(s.until, m.End()/1e6)))
	}
	return "transform(k, [" + strings.Join(keys, ",") + "], [" + strings.Join(values, ",") + "], toInt64(0))"
}
