package frame

// Where the columns of every frame of kind log are in it, in the order of schemas.BaseColumns.
const (
	inTs = iota
	inID
	inLevel
	inService
	inType
	inUserID
	inTraceID
	inSpanID
	inMessage
	inAttributes
)
