// Package usage reads what topics of kind meter measured: sizes, their integral over time, and
// the diffs behind them. It changes nothing.
//
// # Model
//
// A diff changes the size of a space from its time on. The usage between from and to is the
// integral of the size over that time, in units × milliseconds:
//
//	Σ over diffs with t < to of delta × (to − max(t, from))
//
// It needs no order, no running total and no hand-over between months: a late or repeated diff
// changes its own term alone. Times count in whole milliseconds, truncated. All numbers are
// whole numbers of any size.
//
// Of diffs with the same meter, provider, space and cause the earliest counts. There are two
// ways to find it, which give the same numbers:
//
//	by cause   groups the rows of a space by their cause. Needs nothing but the topic's table.
//	           It reads one space, and it is what Check compares with.
//	by marks   leaves out the rows that <topic>.repeats names, and looks for repeats itself in
//	           rows that were not examined yet. Where all are examined, whole shards come
//	           from <topic>.sums if no edge of the range lies inside, or if all that do are
//	           edges of days.
//
// # Who is authoritative
//
// The topic's rows are. Sums of a shard are believed only when they and the repeats they left
// out are as many as the shard's rows up to their position. So a report is the same while sums
// are missing, behind, or filled again. Of a shard that retention dropped the sums are all
// there is, and they are final.
//
// The positions are read first, and the statement asserts that neither marks nor sums moved
// since. When they did it is asked again.
//
// # Failures
//
// What the caller got wrong wraps schemas.ErrRequest. A range that cuts a dropped shard within
// a day is ErrCut, with the nearest edges that can be answered. ErrDiffers: Check found other
// numbers by cause. Every call ends with its context.
package usage
