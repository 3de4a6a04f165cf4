package schemas

// Types of the events that billing publishes into a topic of kind log.
const (
	TypeBill       = "usage.bill"       // what was billed
	TypeCorrection = "usage.correction" // a closed month moved
	TypeBucket     = "usage.bucket"     // a bucket of a round: its bills or corrections are in the same frame
	TypePositions  = "usage.positions"  // the positions that bills stand on
)

// Attributes of these events.
const (
	AttrBilledTopic = "billed_topic"
	AttrBilledMonth = "billed_month"
	AttrBillRound   = "bill_round" // 0: the close; then each run of corrections
	AttrBillBucket  = "bill_bucket"
	AttrBillBuckets = "bill_buckets"
	AttrBillGroup   = "bill_group_by"
	AttrBillMeasure = "bill_measure"
	AttrBillRun     = "bill_run" // names positions
	AttrBillPart    = "bill_part"
	AttrBillParts   = "bill_parts"
	AttrBillAt      = "bill_positions"
	// Of a bill and of a correction, besides those named as in a report.
	AttrBillRevision = "bill_revision" // 0: the bill; then each correction of it
	AttrBillSince    = "bill_since"    // the diffs stored since, as JSON
	AttrBillMore     = "bill_since_more"
	// BillWas begins the names of a correction's old numbers.
	BillWas = "was_"
)

// Numbers of a bill, and what it is for, as attributes.
const (
	AttrBillMeter     = "meter"
	AttrBillProvider  = "provider"
	AttrBillSpace     = "space"
	AttrBillCustomer  = "customer"
	AttrBillSizeStart = "size_start"
	AttrBillSizeEnd   = "size_end"
	AttrBillUsage     = "usage"
	AttrBillAverage   = "average"
	AttrBillCauses    = "causes"
	AttrBillRepeats   = "repeats"
	AttrBillAnomaly   = "anomaly"
)
