package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/maintenance/billing"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
)

// The SQL that the page of meters gives for the bills of a month has each of them once, where there are two
// of everything, and as it was corrected last. Customers who share a space share its bill, unless the month was closed
// for each of them.
func TestBillsInSQL(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/meters.md")
	if err != nil {
		t.Fatal(err)
	}
	_, sql, _ := strings.Cut(string(page), "```sql\n")
	sql, _, ok := strings.Cut(sql, "```")
	if !ok || !strings.Contains(sql, "FROM bills\n") {
		t.Fatalf("the page has %q", sql)
	}
	e := running(t, meterTopic(t, "usage"), meterTopic(t, "seats"), schemas.NewTopic("bills"))
	e.rollups()
	e.billsInSQL(sql, "usage", "")
	e.billsInSQL(strings.Replace(sql, "'usage' AND", "'seats' AND", 1), "seats", "customer,space")
}

// billsInSQL closes a month of a topic, corrects it, and compares its bills with a statement's.
func (e *env) billsInSQL(sql, topic string, by usage.GroupBy) {
	e.t.Helper()
	key := func(d meter.Diff) string {
		customer := ""
		if by != "" {
			customer = d.Customer
		}
		return strings.Join([]string{d.Meter, d.Provider, d.Space, customer}, " ")
	}
	var all []meter.Diff
	for i := range 16 {
		d := february(3, i%2, fmt.Sprint("c-", i), int64(1+i))
		d.Meter, d.Provider, d.Customer = fmt.Sprint("m-", i/2%2), fmt.Sprint("p-", i/4%2), fmt.Sprint("u-", i/8%2)
		all = append(all, d)
	}
	e.diffs(topic, all...)
	e.finalUsage(topic)
	req := billing.Request{Topic: topic, Month: 202602, Into: "bills", GroupBy: by}
	if _, err := e.closer("").Close(e.t.Context(), req); err != nil {
		e.t.Fatal(err)
	}
	late := all[5]
	late.Cause, late.Delta = "late", 1000
	e.diffs(topic, late)
	e.finalUsage(topic)
	if res, err := e.closer("").Corrections(e.t.Context(), req); err != nil || len(res.Corrections) != 1 || len(res.Corrections[0].Since) != 1 {
		e.t.Fatalf("%s: %+v, %v: want one correction", topic, res, err)
	}
	e.finalUsage("bills")
	want := map[string]string{}
	for _, d := range append(all, late) {
		var sum int64
		_, _ = fmt.Sscan(want[key(d)], &sum)
		want[key(d)] = fmt.Sprint(sum + d.Delta*((schemas.Month(202602).End()-d.Time.UnixNano())/1e6))
	}
	rows, err := e.hand.Conn().Query(e.t.Context(), strings.Replace(sql, "FROM bills\n", "FROM "+e.table("bills")+"\n", 1))
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for rows.Next() {
		var m, p, s, c, usage string
		if err := rows.Scan(&m, &p, &s, &c, &usage); err != nil {
			e.t.Fatal(err)
		}
		n++
		if key := strings.Join([]string{m, p, s, c}, " "); want[key] != usage {
			e.t.Errorf("%s: %s has %s, want %q", topic, key, usage, want[key])
		}
	}
	if err := rows.Err(); err != nil || n != len(want) {
		e.t.Errorf("%s: %d bills, %v, want %d", topic, n, err, len(want))
	}
}
