package main

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/query/usage"
)

// A real bill of 1,000 lines, sent twice, by account, month and quantity. The file is of the
// FinOps Foundation, CC BY 4.0. What was billed is in whole numbers of 10^-11 of the currency.
func TestFocusBill(t *testing.T) {
	t.Parallel()
	bill := focus(t)
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "bill", "--kind", "meter", "--field", "amount:decimal")
	var lines strings.Builder
	for i := range bill {
		l := &bill[i]
		fmt.Fprintf(&lines, `{"ts":%q,"type":"cost","provider":%q,"space":%q,"cause":"line-%d","delta":%s,"user_id":%q,"amount":%q}`+"\n",
			l.End.Format("2006-01-02T15:04:05Z"), l.Provider, "sku-"+l.SKU, i, l.BilledUnits(), l.Account, cmp.Or(l.Consumed, "0"))
	}
	for range 2 {
		b.ok(lines.String(), "send", "bill", "--format", "ndjson")
	}
	request := []string{"usage", "bill", "--from", "2024-09-01", "--to", "2024-11-01", "-o", "json"}
	total := decoded[usage.Bill](b, append(request, "--measure", "sum")...)
	if total.Usage != "2052022672899" || total.Causes != 1000 || total.Repeats != 1000 {
		t.Errorf("total: %+v", total)
	}
	accounts := decoded[[]usage.Bill](b, append(request, "--measure", "sum", "--group-by", "customer")...)
	found := ""
	for _, a := range accounts {
		if a.Customer == "11353890204" {
			found = a.Usage
		}
	}
	if len(accounts) != 73 || found != "1361648254970" {
		t.Errorf("%d accounts, of which 11353890204 has %s", len(accounts), found)
	}
	months := decoded[[]usage.Bill](b, append(request, "--measure", "count", "--group-by", "month")...)
	if len(months) != 2 || months[0].Usage != "999" || months[1].Usage != "1" {
		t.Errorf("by month: %+v", months)
	}
	b.derived("bill", 1000)
	const sums = "SELECT toString(sum(amount)) AS consumed, toString(sum(delta)) AS billed, uniqExact(user_id) AS accounts FROM bill_once"
	if got, want := b.ok("", "sql", "-o", "ndjson", sums), `{"consumed":"13438.712904456820057","billed":"2052022672899","accounts":73}`+"\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// focus is the bill; without it the test is skipped.
func focus(t *testing.T) []inputtest.FocusLine {
	t.Helper()
	bill := inputtest.FocusBill(t)
	if bill == nil {
		t.Skip("no folder shared/data above this package; ALMANAC_SHARED_DATA can name it")
	}
	return bill
}
