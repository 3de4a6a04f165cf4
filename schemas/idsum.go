package schemas

import (
	"fmt"
	"strconv"
)

// IDHashSQL is what a row adds to IDSumSQL.
const IDHashSQL = "cityHash64(" + ColID + ", toUnixTimestamp64Nano(" + ColTs + "))"

// IDSumSQL is frame.Reader.IDSum in ClickHouse, as an aggregate over a table's rows: which events they
// are, whatever their order.
const IDSumSQL = "sumWithOverflow(" + IDHashSQL + ")"

// formatIDSum is a sum as a header has it: 16 hex digits.
func formatIDSum(sum uint64) string { return fmt.Sprintf("%016x", sum) }

// parseIDSum reads that form.
func parseIDSum(text string) (sum uint64, ok bool) {
	sum, err := strconv.ParseUint(text, 16, 64)
	return sum, err == nil && len(text) == 16
}
