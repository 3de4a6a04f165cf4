package usage

import (
	"math/big"
	"time"
)

// Bill is the usage of a space, a customer, a day, or of all that was selected. Whole numbers
// of any size and decimals are text.
type Bill struct {
	Meter    string `json:"meter,omitempty"`
	Provider string `json:"provider,omitempty"`
	Space    string `json:"space,omitempty"`
	Customer string `json:"customer,omitempty"`
	// From and To are the bill's own: of its day or month where it is for one.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// SizeStart is the size just before From, SizeEnd just before To.
	SizeStart string `json:"size_start"`
	SizeEnd   string `json:"size_end"`
	// Usage is the measure: size × milliseconds, the sum of the deltas, or their count.
	Usage string `json:"usage"`
	// Average is the integral divided by the milliseconds, truncated to 12 digits behind the
	// point; absent for other measures.
	Average string `json:"average,omitempty"`
	// Causes counts the diffs before To that count, of a day or month those within it. Repeats
	// counts their copies.
	Causes  uint64 `json:"causes"`
	Repeats uint64 `json:"repeats"`
	// Anomaly: the size is below zero at From or at To.
	Anomaly bool `json:"anomaly"`
}

// Report is the bills of a request.
type Report struct {
	Topic   string    `json:"topic"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Measure Measure   `json:"measure"`
	GroupBy GroupBy   `json:"group_by,omitempty"`
	Bills   []Bill    `json:"bills"`
	// Cursor continues after the last one; absent on the last page, and of Reader.Report.
	Cursor string `json:"cursor,omitempty"`
	// Contradictions counts copies that say something else than the diff that counts.
	Contradictions uint64 `json:"contradictions,omitempty"`
	// TooLate are diffs that came when retention had taken their months.
	TooLate *TooLate `json:"too_late,omitempty"`
}

// key is what a column that tells bills apart is in a bill.
func (b *Bill) key(column string) *string {
	switch column {
	case "provider":
		return &b.Provider
	case "space":
		return &b.Space
	case "user_id":
		return &b.Customer
	}
	return &b.Meter
}

// bill fills in the numbers of a bill.
func (r *Request) bill(b Bill, n *numbers) Bill {
	if b.From.IsZero() {
		b.From, b.To = r.From, r.To
	}
	b.SizeStart, b.SizeEnd = n.before.String(), n.end.String()
	b.Causes, b.Repeats = n.causes, n.repeats
	b.Anomaly = n.before.Sign() < 0 || n.end.Sign() < 0
	switch r.Measure {
	case Sum:
		b.Usage = new(big.Int).Sub(&n.end, &n.before).String()
	case Count:
		b.Usage = new(big.Int).SetUint64(n.causes - n.causesBefore).String()
	default:
		b.Usage = n.usage.String()
		b.Average = average(&n.usage, b.To.UnixMilli()-b.From.UnixMilli())
	}
	if r.Measure != Integral { // a size means nothing there
		b.Anomaly = false
	}
	return b
}
