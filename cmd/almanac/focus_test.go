package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/query/usage"
)

// A real bill of 1,000 lines, sent twice, by account. The file is of the FinOps Foundation,
// CC BY 4.0. Amounts are whole numbers of 10^-11 of the currency.
func TestFocusBill(t *testing.T) {
	t.Parallel()
	rows := focus(t)
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "bill", "--kind", "meter")
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	var lines strings.Builder
	for i, row := range rows[1:] {
		whole, rest, _ := strings.Cut(row[column["BilledCost"]], ".")
		delta := strings.TrimLeft(whole+rest+strings.Repeat("0", 11-len(rest)), "0")
		if strings.HasPrefix(whole, "-") {
			delta = "-" + strings.TrimLeft(whole[1:]+rest+strings.Repeat("0", 11-len(rest)), "0")
		}
		if delta == "" || delta == "-" {
			delta = "0"
		}
		fmt.Fprintf(&lines, `{"ts":"%sZ","type":"cost","provider":%q,"space":%q,"cause":"line-%d","delta":%s,"user_id":%q}`+"\n",
			strings.Replace(row[column["ChargePeriodStart"]], " ", "T", 1), row[column["ProviderName"]], "sku-"+row[column["SkuId"]], i, delta, row[column["SubAccountId"]])
	}
	for range 2 {
		b.ok(lines.String(), "send", "bill", "--format", "ndjson")
	}
	request := []string{"usage", "bill", "--from", "2024-09-01", "--to", "2024-11-01", "--measure", "sum", "-o", "json"}
	total := decoded[usage.Bill](b, request...)
	if total.Usage != "2052022672899" || total.Causes != 1000 || total.Repeats != 1000 {
		t.Errorf("total: %+v", total)
	}
	accounts := decoded[[]usage.Bill](b, append(request, "--group-by", "customer")...)
	if len(accounts) != 73 {
		t.Errorf("%d accounts", len(accounts))
	}
	for _, a := range accounts {
		if a.Customer == "11353890204" && a.Usage != "1361648254970" {
			t.Errorf("account: %+v", a)
		}
	}
}

func focus(t *testing.T) [][]string {
	t.Helper()
	const name = "usage-focus-billing.csv"
	dir := os.Getenv("ALMANAC_SHARED_DATA")
	for at, err := os.Getwd(); dir == ""; at = filepath.Dir(at) {
		if err != nil {
			t.Fatal(err)
		}
		data := filepath.Join(at, "shared", "data")
		if _, err := os.Stat(data); err == nil {
			dir = data
		} else if at == filepath.Dir(at) {
			t.Skip("no folder shared/data above this package; ALMANAC_SHARED_DATA can name it")
		}
	}
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}
