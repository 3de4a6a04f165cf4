package sql

// Statements of query/usage. Tables are quoted; a Where and what ends in SQL are conditions and
// expressions of the reader, whose values are parameters; what is called Rows is a statement.

// UsageRows selects the diffs that no sums stand for.
type UsageRows struct {
	Table, Where string
	// Again is the condition of rows that do not count.
	Again string
}

// SQL is the statement.
func (u UsageRows) SQL() string { return fill("usage/rows", u) }

// UsageCauses selects the diffs that no sums stand for, a row a cause.
type UsageCauses struct {
	Table, Where string
	// AfterDropped is the condition of copies whose diff that counts was in a shard that retention dropped.
	AfterDropped string
	// Places adds where a row is stored, which few ask for.
	Places bool
	// OfCustomer selects those of {user_id:String}.
	OfCustomer bool
	// Billed: only what a bill is made of, with the customer where it is of Customers. It is for where no shard was
	// dropped. Space: those of {space:String}.
	Billed, Customers, Space bool
	// Within, in nanoseconds, is the topic's once_within: of equal diffs each counts that comes longer
	// than that after the one before it. The first of a cause has the number of copies. 0: one counts.
	Within int64
}

// SQL is the statement.
func (u UsageCauses) SQL() string { return fill("usage/causes", u) }

// UsageSums selects the sums of whole shards, and UsageDays those of their days, as UsageBills and
// UsageSpans read them: past says that they lie before the range, and weighted counts to mend, the
// end of the month.
type UsageSums struct {
	Sums, Where string
	// Shards lists all that are read, Past those of them that lie before the range.
	Shards, Past string
	// EndsSQL is the end of a row's month, in Unix ms.
	EndsSQL string
}

// SQL is the statement.
func (u UsageSums) SQL() string { return fill("usage/sums", u) }

// UsageDays is told at UsageSums.
type UsageDays struct {
	Sums, Where, Shards string
	// BeginsSQL and EndsSQL are the begin and the end of a row's month, in Unix ms.
	BeginsSQL, EndsSQL string
	DayMs              int64
}

// SQL is the statement.
func (u UsageDays) SQL() string { return fill("usage/days", u) }

// UsageBills is a bill a row: the keys, then before, end, usage, causes before, causes, repeats.
type UsageBills struct {
	// Keys are the columns that tell bills apart.
	Keys string
	Rows string
	// All: each of the rows counts.
	All bool
	// Sums are statements of UsageSums and UsageDays.
	Sums []string
	// Unmoved is the condition that holds while marks and sums are as they were.
	Unmoved string
	// AfterSQL is the condition of the keys of a page, "" for all; Limit is how many, 0 for all.
	AfterSQL string
	Limit    int
}

// SQL is the statement.
func (u UsageBills) SQL() string { return fill("usage/bills", u) }

// UsageSpans is a meter's span of time a row: the meter, the span (a day by its number, a month as
// YYYYMM, -1 before the range), then delta, weighted to the span's end, causes, repeats.
type UsageSpans struct {
	// ByMonth: spans are months; else they are days.
	ByMonth bool
	// EndsSQL is the end of the month k, in Unix ms.
	EndsSQL string
	Rows    string
	Sums    []string
	Unmoved string
}

// SQL is the statement.
func (u UsageSpans) SQL() string { return fill("usage/spans", u) }

// UsageDiffs is a page of diffs, in the order of time and id.
type UsageDiffs struct {
	Rows, Where, Unmoved string
	// After: only those after {ns:Int64} and {id:UUID}.
	After bool
	Limit int
}

// SQL is the statement.
func (u UsageDiffs) SQL() string { return fill("usage/diffs", u) }

// UsageContradicting is the copies that say something else than the diff that counts, each with that diff's id and
// shard. An id alone may be that of several rows.
type UsageContradicting struct {
	// Marks is the table of repeats, "" when nothing is marked. Unmarked selects the repeats of rows that were not
	// examined, as its rows; "" without such rows.
	Marks, Unmarked string
	Limit           int
	Unmoved         string
}

// SQL is the statement.
func (u UsageContradicting) SQL() string { return fill("usage/contradicting", u) }

// UsageContradictory is both diffs of each pair.
type UsageContradictory struct {
	Table, Where string
	Pairs        UsageContradicting
}

// SQL is the statement.
func (u UsageContradictory) SQL() string { return fill("usage/contradictory", u) }

// UsageDiffering has a row when copies of {space:String} may say something else than the diffs that count. Marks is the
// table of repeats.
type UsageDiffering struct{ Table, Marks, Where string }

// SQL is the statement.
func (u UsageDiffering) SQL() string { return fill("usage/differing", u) }
