package schemas

// LedgerCopy is an entry of the ledger as a copy outside NATS has it.
type LedgerCopy struct {
	Key string
	// Count is how often the entry was written; see HeaderCount.
	Count uint64
	// Value is empty where the entry was forgotten.
	Value []byte
	// Applied says of an erasure that the rows of this copy's ClickHouse are without it.
	Applied bool
}
