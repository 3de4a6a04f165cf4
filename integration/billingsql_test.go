package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/maintenance/billing"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/schemas"
)

// The SQL that the page of meters gives for the bills of a month has each of them once, where there are two
// of everything, and as it was corrected last. Customers who share a space share its bill.
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
	e := running(t, meterTopic(t, "usage"), schemas.NewTopic("bills"))
	e.rollups()
	want := map[string]string{}
	var all []meter.Diff
	for i := range 16 {
		d := february(3, i%2, fmt.Sprint("c-", i), int64(1+i))
		d.Meter, d.Provider, d.Customer = fmt.Sprint("m-", i/2%2), fmt.Sprint("p-", i/4%2), fmt.Sprint("u-", i/8%2)
		all = append(all, d)
		want[strings.Join([]string{d.Meter, d.Provider, d.Space, ""}, " ")] = ""
	}
	e.diffs("usage", all...)
	e.settledUsage("usage")
	req := billing.Request{Topic: "usage", Month: 202602, Into: "bills"}
	if _, err := e.closer("").Close(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	late := all[5]
	late.Cause, late.Delta = "late", 1000
	e.diffs("usage", late)
	e.settledUsage("usage")
	if _, err := e.closer("").Corrections(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	e.settledUsage("bills")
	for _, d := range append(all, late) {
		key, ms := strings.Join([]string{d.Meter, d.Provider, d.Space, ""}, " "), (schemas.Month(202602).End()-d.Time.UnixNano())/1e6
		var sum int64
		_, _ = fmt.Sscan(want[key], &sum)
		want[key] = fmt.Sprint(sum + d.Delta*ms)
	}
	rows, err := e.db.Conn().Query(t.Context(), strings.Replace(sql, "FROM bills\n", "FROM "+e.table("bills")+"\n", 1))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for rows.Next() {
		var m, p, s, c, usage string
		if err := rows.Scan(&m, &p, &s, &c, &usage); err != nil {
			t.Fatal(err)
		}
		n++
		if key := strings.Join([]string{m, p, s, c}, " "); want[key] != usage {
			t.Errorf("%s has %s, want %q", key, usage, want[key])
		}
	}
	if err := rows.Err(); err != nil || n != len(want) {
		t.Errorf("%d bills, %v, want %d", n, err, len(want))
	}
}
