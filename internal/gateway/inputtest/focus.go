package inputtest

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// FocusLine is a line of a bill. Numbers are texts as the file has them.
type FocusLine struct {
	Start, End             time.Time // of what is charged
	Provider, SKU, Account string
	Billed, Consumed       string // Consumed is empty where nothing is counted
}

// BilledUnits is what was billed in units of 10^-11 of the currency, as a whole number.
func (l *FocusLine) BilledUnits() string {
	whole, rest, _ := strings.Cut(strings.TrimPrefix(l.Billed, "-"), ".")
	units := strings.TrimLeft(whole+rest+strings.Repeat("0", 11-len(rest)), "0")
	switch {
	case units == "":
		return "0"
	case l.Billed[0] == '-':
		return "-" + units
	}
	return units
}

// FocusBill reads a real bill of 1,000 lines from shared/data: sample data of the FinOps
// Foundation, CC BY 4.0. It returns nil where the folder is absent.
func FocusBill(t testing.TB) (lines []FocusLine) {
	t.Helper()
	dir := DataDir(t)
	if dir == "" {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "usage-focus-billing.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{} // by name: the file has dozens of columns, and their order is not part of FOCUS
	for i, name := range rows[0] {
		column[name] = i
	}
	for _, row := range rows[1:] {
		at := func(name string) time.Time {
			v, err := time.Parse(time.DateTime, row[column[name]])
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		l := FocusLine{Start: at("ChargePeriodStart"), End: at("ChargePeriodEnd"), Provider: row[column["ProviderName"]], SKU: row[column["SkuId"]],
			Account: row[column["SubAccountId"]], Billed: row[column["BilledCost"]], Consumed: row[column["ConsumedQuantity"]]}
		if l.Consumed == "NULL" {
			l.Consumed = ""
		}
		lines = append(lines, l)
	}
	return lines
}
