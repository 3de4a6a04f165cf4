package kinds

// Columns of kind timer. The base column ts is when the timer changed, id the change's.
const (
	ColGroup    = "group"
	ColTimerID  = "timer_id"
	ColLife     = "life" // UUID of the creation
	ColSlot     = "slot"
	ColRevision = "revision"
	ColAttempt  = "attempt"
	ColState    = "state"
	ColDue      = "due"
	ColHost     = "host"
	ColStatus   = "status" // of the callback's answer
	ColError    = "error"  // timeout, refused, blocked-address, not-json …
	ColDetail   = "detail"
	ColTookMs   = "took_ms"
	ColLateMs   = "late_ms"
	ColSpec     = "spec" // JSON text, on created and updated
)

// FrontTimers is the stream of timers' records.
const FrontTimers = "TIMERS"

// timers are transitions of timers: a row a change, from the front TIMERS.
var timers = Spec{
	Kind: Timer, Short: "transitions of timers",
	Fields: []Field{
		{Name: ColGroup, Type: TypeLowCardinality},
		{Name: ColTimerID, Type: TypeString},
		{Name: ColLife, Type: TypeString},
		{Name: ColSlot, Type: TypeInt64},
		{Name: ColRevision, Type: TypeInt64},
		{Name: ColAttempt, Type: TypeInt64},
		{Name: ColState, Type: TypeLowCardinality},
		{Name: ColDue, Type: TypeTimestamp},
		{Name: ColHost, Type: TypeLowCardinality},
		{Name: ColStatus, Type: TypeInt64},
		{Name: ColError, Type: TypeLowCardinality},
		{Name: ColDetail, Type: TypeString},
		{Name: ColTookMs, Type: TypeFloat64},
		{Name: ColLateMs, Type: TypeFloat64},
		{Name: ColSpec, Type: TypeString},
		{Name: ColSeq, Type: TypeInt64},
	},
	Codecs: map[string]string{ColSpec: "ZSTD(3, 20)", ColSeq: "Delta(8), ZSTD(1)"},
	Lanes:  FrontLanes,
	LaneBy: []string{ColGroup, ColTimerID},
	Rotate: defaultRotation,
	Table:  "timer.sql",
	Sort:   []string{ColGroup, ColTimerID, ColTs, ColSeq},
	Views:  []View{{Suffix: ViewLatest, Select: "timer_latest.sql"}},
	Front:  FrontTimers,
}
