package kinds

import "time"

// Columns of kind meter. The base column type is the name of the meter, user_id the customer.
const (
	ColProvider = "provider" // of the metered space
	ColSpace    = "space"    // what has the size
	ColCause    = "cause"    // why it changed: a change is counted once for each cause
	ColDelta    = "delta"    // by how much, signed
)

// MaxDelta bounds a change in both directions: the last whole number that JSON carries
// exactly everywhere.
const MaxDelta = 1 << 53

// meters are signed changes of a size. A change that comes again counts once, and the
// earliest of its copies is the one that counts.
var meters = Spec{
	Kind: Meter, Short: "signed changes of a size, each counted once by its cause",
	Fields: []Field{
		{Name: ColProvider, Type: TypeLowCardinality},
		{Name: ColSpace, Type: TypeString},
		{Name: ColCause, Type: TypeString},
		{Name: ColDelta, Type: TypeInt64},
	},
	Rules: []Rule{
		{Column: ColSpace, Present: true, NotEmpty: true},
		{Column: ColCause, Present: true, NotEmpty: true},
		{Column: ColDelta, Present: true, Lo: -MaxDelta, Hi: MaxDelta},
	},
	Sorted:    true,
	LaneBy:    []string{ColCause},
	Rotate:    defaultRotation,
	Once:      []string{ColType, ColProvider, ColSpace, ColCause},
	Wins:      First,
	MaxFuture: 5 * time.Minute,
	Waits:     true,
	Table:     "meter.sql",
	Sort:      []string{ColType, ColProvider, ColSpace, ColTs, ColID},
}
